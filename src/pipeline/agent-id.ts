/** Why a value is not a valid agent id, or undefined. Also applied to ids that come from a variable: an id becomes a file name. */
export function agentIdFault(id: unknown): string | undefined {
  if (typeof id !== 'string' || id === '') return 'must be an agent id'
  if (id.length > 200) return 'is longer than 200 characters'
  // oxlint-disable-next-line no-control-regex -- a NUL ends a file name for the system, whatever follows it
  if (/[\u0000-\u001F\u007F/\\]/.test(id) || id.includes('..') || id === '.') {
    return 'must be an agent id, without "/", "\\", ".." or control characters'
  }
  return undefined
}
