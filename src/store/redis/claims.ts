/** Tells of claims by any process: who was the owner may not know yet. A hint, which may be lost. */
import type { Channels } from './channels.ts'
import { partitions } from './index-script.ts'
import type { Keys } from './keys.ts'

export function followClaims(channels: Channels, keys: Keys, claimed: (run: string, epoch: number) => void): void {
  /** `claim <epoch> <run>`. */
  function hear(note: string): void {
    const [, epoch, run] = /^claim (\d+) ([^]*)$/u.exec(note) ?? []
    if (run !== undefined) claimed(run, Number(epoch))
  }
  for (let partition = 0; partition < partitions; partition++) {
    channels.open(keys.note(partition), hear).catch(() => undefined)
  }
}
