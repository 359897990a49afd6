export default function Stub() {
  return <h1 tabIndex={-1}>…</h1>;
}
