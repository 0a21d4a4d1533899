/**
 * Lines that are typed while an answer is shown: each goes into the running turn. The terminal echoes and edits them itself, so that Ctrl-C stays a
 * signal. What is not finished by Enter stands at the next prompt, and so does what a stop has dropped.
 */
import type { CommandContext } from '../context.ts'

export interface TypedLines {
  /** A question of the run reads the keyboard. */
  pause(): void
  resume(): void
  /** Resolves when all lines were sent. `dropped`: the ids of messages that the run was stopped before. */
  close(dropped: readonly string[]): Promise<void>
}

/** `send`: rejects if the run does not take the line: then it is the next one at the prompt. */
export function readTypedLines({ stdin }: CommandContext, send: (line: string) => Promise<{ id: string }>): TypedLines {
  let rest = ''
  let isReading = false
  const late: string[] = []
  const sent = new Map<string, string>()
  const sending = new Set<Promise<unknown>>()

  function read(piece: string | Buffer): void {
    const lines = (rest + piece.toString()).split(/\r?\n|\r/u)
    rest = lines.pop()!
    for (const line of lines) {
      if (line.trim() === '') continue
      const told = send(line.trim()).then(
        ({ id }) => void sent.set(id, line.trim()),
        () => void late.push(line),
      )
      sending.add(told)
      void told.finally(() => sending.delete(told))
    }
  }

  function pause(): void {
    if (!isReading) return
    isReading = false
    stdin.off('data', read)
    stdin.pause()
  }

  function resume(): void {
    if (isReading) return
    isReading = true
    stdin.on('data', read)
    stdin.resume()
  }

  resume()
  return {
    pause,
    resume,
    async close(dropped) {
      pause()
      await Promise.all(sending)
      const back = dropped.flatMap((id) => sent.get(id) ?? [])
      const text = late.map((line) => `${line}\n`).join('') + [...back, rest].filter(Boolean).join(' ')
      if (text !== '') stdin.unshift(text)
      rest = ''
    },
  }
}
