/**
 * Lines that are typed while an answer is shown: each goes into the running turn. The terminal echoes and edits them itself, so that Ctrl-C stays a
 * signal. What is not finished by Enter stands at the next prompt.
 */
import type { CommandContext } from '../context.ts'

export interface TypedLines {
  /** A question of the run reads the keyboard. */
  pause(): void
  resume(): void
  /** Resolves when all lines were sent. */
  close(): Promise<void>
}

/** `send`: rejects if the run can no longer take the line: then it is the next message. */
export function readTypedLines({ stdin }: CommandContext, send: (line: string) => Promise<unknown>): TypedLines {
  let rest = ''
  let isReading = false
  const late: string[] = []
  const sending = new Set<Promise<unknown>>()

  function read(piece: string | Buffer): void {
    const lines = (rest + piece.toString()).split(/\r?\n|\r/u)
    rest = lines.pop()!
    for (const line of lines) {
      if (line.trim() === '') continue
      const sent = send(line.trim()).catch(() => late.push(line))
      sending.add(sent)
      void sent.finally(() => sending.delete(sent))
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
    async close() {
      pause()
      await Promise.all(sending)
      const text = late.map((line) => `${line}\n`).join('') + rest
      if (text !== '') stdin.unshift(text)
      rest = ''
    },
  }
}
