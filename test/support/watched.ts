/** The output of a command, and those who wait for something in it. */
export function createWatched() {
  const text = { out: '', err: '' }
  let hasEnded = false
  let watchers: (() => void)[] = []

  function changed(): void {
    const woken = watchers
    watchers = []
    for (const wake of woken) wake()
  }

  return {
    get hasEnded() {
      return hasEnded
    },
    text: (name: 'out' | 'err') => text[name],
    add(name: 'out' | 'err', more: string): void {
      // What it leaves running has no one to talk to.
      if (hasEnded) return
      text[name] += more
      changed()
    },
    end(): void {
      hasEnded = true
      changed()
    },
    /** Resolves when the output holds the text; throws when the command ends first. */
    async until(wanted: string): Promise<void> {
      while (!(text.out + text.err).includes(wanted)) {
        if (hasEnded) throw new Error(`ended without ${JSON.stringify(wanted)}: ${text.out}${text.err}`)
        await new Promise<void>((wake) => watchers.push(wake))
      }
    },
  }
}
