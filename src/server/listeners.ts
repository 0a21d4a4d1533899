/** Functions that want to be called when something happens. */
export function createListeners() {
  const listeners = new Set<() => void>()
  return {
    listen(listener: () => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    tell(): void {
      for (const listener of listeners) listener()
    },
  }
}
