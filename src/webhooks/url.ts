/** Why a webhook can't be sent there, whatever the address; `null`: it can. */
export function findWebhookUrlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return "it is no http or https URL";
  if (url.username !== "" || url.password !== "") {
    return "it holds a name or a password: put a secret into its path or query instead";
  }
  return url.hash === "" ? null : "it has a fragment, which is never sent: leave it out";
}
