/** Values of `server.access` that the config, the routes and the command line have in common. */

/** `MILLRACE_API_KEY` is the name of the server's own key. */
export function isKeyName(name: string): boolean {
  return /^[\w.-]{1,64}$/u.test(name) && name !== 'MILLRACE_API_KEY'
}

export const keyNameWords = '1 to 64 letters, digits, _, - or dots, and not MILLRACE_API_KEY'

/** When something ends that counts up to this day (to its midnight UTC) or moment, in epoch ms. Undefined for what is no date. */
export function endOf(date: string): number | undefined {
  const isDay = /^\d{4}-\d{2}-\d{2}$/u.test(date)
  if (!isDay && !/^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/u.test(date)) return undefined
  const time = Date.parse(isDay ? `${date}T23:59:59.999Z` : date)
  // February 30 would be a day in March.
  if (Number.isNaN(time) || (isDay && !new Date(time).toISOString().startsWith(date))) return undefined
  return time
}

export const endWords = 'a day such as "2027-06-30", or a moment such as "2027-06-30T12:00:00Z"'
