/** The thread of a run that belongs to no conversation. */
export function threadOf(runId: string): string {
  return `thread_${runId.replace(/^run_/u, '')}`
}
