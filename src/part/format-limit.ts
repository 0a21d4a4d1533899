/** Formats a time limit for messages: `50 ms`, `2 min`, `90 s`. */
export function formatLimit(ms: number): string {
  if (ms >= 60_000 && ms % 60_000 === 0) return `${ms / 60_000} min`
  if (ms >= 10_000 && ms % 1000 === 0) return `${ms / 1000} s`
  return `${ms} ms`
}
