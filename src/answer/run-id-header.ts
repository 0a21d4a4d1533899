/** The id of a run as the value of `x-millrace-run-id`. That of an imported run may be any text, and a header holds printable ASCII: what it cannot hold is percent-encoded. */
export function runIdHeader(id: string): string {
  return /^[!-$&-~]+$/u.test(id) ? id : encodeURIComponent(id.toWellFormed())
}
