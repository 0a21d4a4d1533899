/** Whether another process has locked the file. */
export function isBusy(error: unknown): boolean {
  // The low byte of the extended code: SQLITE_BUSY, SQLITE_LOCKED.
  const code = Number((error as { errcode?: unknown }).errcode) & 0xff
  return code === 5 || code === 6
}
