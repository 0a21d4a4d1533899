/** Whether the entry is to blame, not the file: programs may append entries whose fields are not what they should be. */
export function isOfEntry(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  const constraint = 19
  return code !== 'ERR_SQLITE_ERROR' || (Number(errcode) & 0xff) === constraint
}
