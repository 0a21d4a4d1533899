/** W3C Trace Context: the caller, as one line. Anything else than a valid one is ignored, as the specification asks. */
const form = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/u

export function toTraceparent(given: unknown): string | undefined {
  const text = typeof given === 'string' ? given.trim() : ''
  const [, version, trace, parent, more] = form.exec(text) ?? []
  if (version === undefined || version === 'ff' || /^0+$/u.test(trace!) || /^0+$/u.test(parent!)) return undefined
  // Later versions may add fields, which nobody can know the end of.
  if (text.length > 256 || (version === '00' && more !== undefined)) return undefined
  return text
}
