/** Names and addresses that mean this machine, whatever a resolver says; `::1` also as URLs write it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/u.test(host)
}
