/**
 * A good signature of each algorithm, over the same three bytes: who has somebody else check signatures
 * sees by these what that one knows.
 */
import { decodeBase64 } from "../bytes/mod.ts";
import { Algorithm } from "./keys.ts";
import type { SignatureCheck } from "./verify.ts";

const DATA = new TextEncoder().encode("svc");

/** 2,048 bits: some systems allow no fewer. */
const RSA_KEY =
  "AwEAAbFBC2VMIKyeNfO6Aq+Ek2rFO8J0BwrWmazH6vawG+FevhIzFXUthc7h7JHWzUWsrh5IeGozSvMp2fpICqU0" +
  "tf9DCUkMcwuX4IAToew844z9rTzCMz1yAILJIcMGx0xL/U7iAC0xJbspLpxuxoWuBNiIscGaFSek8bEF2df70OHw" +
  "DNUr9E+l9gkmbQwl+i/N7HJwQSdDSLnC06vQBtiWBviRWeJZgms1NfQuxp6H/SNjnOI8862WvgKhmHgjNwEqV2rB" +
  "55jyUpWiuScp3/x715zYVJ60f9A1usu1SI6qScubldc9luoSiimbI83Q2BcxJFbumWqaR4ShXiuXl8lTWHk=";
const RSA_SHA1 =
  "Haqpcgs0B9izVBuB9537sf8AsVDhFgmswslSPmHhVJKINzhPfbUGhllY73pN/nHynyMHxpSDJ2FfQEW+1MuA3UlA" +
  "i4Y8J9qra1EBC1x3Pdu82/+wlbtzX4nYQvo145IhrnIPdq1K4BSAvmyqAceP2oqmox+o7RcQltRNk2ErSUmR0mUo" +
  "LrIUBZrBo6GQkAccI+NZelk+H1JL/UraukrDX5Oa4ARpMElfMZSjcde++oF/FY/usKg95xv/BhZXloML7xZ3886I" +
  "aPalqjONCBH/sDnvwjW8ZU8V/Aj6sYC423Z7euCW4bqJj0sKlp5vNlPPePUr4DjoY3NHVbBk7o5E4w==";

/** Algorithm, public key and signature. */
const TEXTS: readonly (readonly [algorithm: number, publicKey: string, signature: string])[] = [
  [Algorithm.RsaSha1, RSA_KEY, RSA_SHA1],
  [Algorithm.RsaSha1Nsec3, RSA_KEY, RSA_SHA1],
  [
    Algorithm.RsaSha256,
    RSA_KEY,
    "I0Oyy9DGRJwBG2tGB4VypRN84hqaRK2Os8Sxow3zcGoFAnEryyT2SPFlrZTIjDbSiwD0VI4P4uxM77bIE6Fki5ZK" +
    "x7ZUHvf1N5NlWqyX1T7lCMc5BEq/Nagqi0k8t4ZxYeVDwBzAQ8JKxvYSTZOVoD+/QrVnlVtESumxOmOnTYpFfjUP" +
    "QAFpAiIidSqaMuy5NSbSF1y8Do5eCLrT60Il4loaqfRrQH8+Ylct5mbDBwCb3CPTlq5Kw/nNTJpME7jk4wc2ZSPX" +
    "hovof4JukQIE1vUXviZSBiHH90nX0gZSDPjGizsL1O9+bp6NectWrSpuerwmWBwQmgyBbp+lKq0k6Q==",
  ],
  [
    Algorithm.RsaSha512,
    RSA_KEY,
    "eJ5g/moY47uRhTWeAKwTBHiOmfPtUDb7B2GMduy5uB0e+7DxdrknDUcII6wgsTmPpCFI9CzcmGCR50hNJZu/8Xtx" +
    "uCHD7vLB/QIKnZaWmw5WFcKSROfil8bkL5w60EczI+bx4d43MZHR7pwkPVal1ZW0CtcfH0coXDtW5VeRqZziLo9K" +
    "nVY29sfMpXkWrDp1TvMpRHTEs39hGTKlhKblQlv6jLfQ0dH2y4iPBwzBWJzojTdgePYUeCgR22DM046OHMua+3YL" +
    "yTymeDtvtuLzunPKqeBUMRN3lwcJs0fr5k5QUOD3AohSRw+KtPu9eCWXIW1J3uAD2dem8gryL1lrwg==",
  ],
  [
    Algorithm.EcdsaP256,
    "4+9dT++YOSFc89An6Wsk6/D8oUnbB4+Sz6dopcz9wra5gz5tWucgcLuI0FwuTpqUzi7Uc9FAdRrancf6uHoRAw==",
    "RR1l8p+tIXtT0RIRnm2/mknC8c0baGzN9DbsSQBaPur/kdMGCvWkfXVA1FUWEcK44EKIba91o5/K+gXoDSZzPA==",
  ],
  [
    Algorithm.EcdsaP384,
    "2dWV1kco4HmFPjeGpeF/ghEd+wIsdAFPa+PJ+yTrpgqZgo9rPMUzp9qD/YQxCFg8uD87CipzrlPS+JhieJKrCgfG" +
    "FqxEMwjkL99n+llpkqYRw5NIXbMsBHhO0GEMt+jR",
    "3rjowGIpu2MAvSKro2neOjAc5sp9c5Y/oaxVEzucMUxRxFometd8CTOESx5oAN3yxUPkUc6bMtJm8b+99HB9xUol" +
    "dhRGaVODaOohZTRDA5JBKCPd/LQ2XKxdoXj4WJJp",
  ],
  [
    Algorithm.Ed25519,
    "RDUfRzTBDuBkI59lhBg53b/GDxNAuBJSOdRNTIbpabE=",
    "vY+jNyVaEwt12Vs1qw/dHykz4azgIXHqFlDgSelxd5szQA+gI3m2yfT//lxDf72gAeZ2bCmyh3irL9kEQYF4DQ==",
  ],
  [
    Algorithm.Ed448,
    "MeIcWNG5j3eWY3/eYnNwbQwNIWTdYcrP5YKgo6fr/O0m6meAWAhXnOdWyuElq3isU0cMzbazxRAA",
    "v5+svBVfu/vd83P3mUMRfv96j6BNEK61M7FAe4mpxmer3+uSMEmKj49iVmA2M55c/QFdgVu0ybgAQst+Ve6lZ4On" +
    "Eg8IqPFojF5ZIyStrMx5oi/QGJSX/Pu+ESxof4ojiwFCco4MqMmw37ZfC0bOyTQA",
  ],
];

export const SAMPLES: readonly SignatureCheck[] = TEXTS.map((
  [algorithm, publicKey, signature],
) => ({
  algorithm,
  publicKey: decodeBase64(publicKey)!,
  data: DATA,
  signature: decodeBase64(signature)!,
}));
