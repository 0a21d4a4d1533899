/** Where a key leads in a list. Undefined: it is no key of a list. */
export function nextPlace(key: string, at: number, length: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
      return Math.min(length - 1, at + 1)
    case 'ArrowUp':
      return Math.max(0, at - 1)
    case 'Home':
      return 0
    case 'End':
      return length - 1
    default:
      return undefined
  }
}
