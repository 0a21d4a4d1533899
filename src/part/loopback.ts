/** Whether a host is this machine, without DNS: `localhost`, 127.0.0.0/8, `::1` and its URL form `[::1]`. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/u.test(host)
}
