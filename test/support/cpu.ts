/** CPU time of this process since the call, in ms: other load on the machine does not count. */
export function countCpu(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}
