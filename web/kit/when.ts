/** How the page says when something was, or will be: in the reader's time zone. */

/** `just now`, `40 s ago`, `11 min ago`, `3 h ago`, `2 days ago`. */
export function since(time: number, now: number): string {
  const seconds = Math.round((now - time) / 1000)
  return seconds < 5 ? 'just now' : `${span(seconds)} ago`
}

/** `in 40 s`, `in 11 min`, `today 20:05`, `tomorrow 20:05`, `Sat 5 Dec, 20:05`, `5 Dec 2027`. */
export function until(time: number, now: number): string {
  const seconds = Math.round((time - now) / 1000)
  if (seconds < 3600) return `in ${span(Math.max(0, seconds))}`
  const clock = new Date(time).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  const days = dayOf(time) - dayOf(now)
  if (days < 2) return `${days === 0 ? 'today' : 'tomorrow'} ${clock}`
  const inWords = (options: Intl.DateTimeFormatOptions) => new Date(time).toLocaleDateString('en-GB', options)
  const date = inWords({ day: 'numeric', month: 'short' })
  if (days > 180) return `${date} ${new Date(time).getFullYear()}`
  return `${inWords({ weekday: 'short' })} ${date}, ${clock}`
}

function span(seconds: number): string {
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} days`
}

/** The number of the day in the reader's time zone. */
function dayOf(time: number): number {
  const date = new Date(time)
  return Math.floor(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 86_400_000)
}
