/** The bytes of a stream of `/v1/responses`, as a client has them when its connection breaks. */
import type { Entry } from '../../src/part/entry.ts'
import { responsesWire } from '../../src/wire/responses/responses.ts'

export interface ReadResponse {
  run: string
  /** The complete frames so far, without those that keep the connection. */
  frames(): string[]
  /** Resolves when the stream has ended or broken. */
  end: Promise<void>
  /** Resolves once there are so many frames. */
  reaches(count: number): Promise<void>
}

/** `request`: of a stream. */
export async function readResponseStream(request: Promise<Response>): Promise<ReadResponse> {
  const response = await request
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  const decoder = new TextDecoder()
  const frames: string[] = []
  const waiting: { count: number; done: () => void }[] = []
  let text = ''
  const read = async () => {
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk, { stream: true })
      for (let at = text.indexOf('\n\n'); at >= 0; at = text.indexOf('\n\n')) {
        const frame = text.slice(0, at + 2)
        text = text.slice(at + 2)
        if (!frame.startsWith('event: keepalive\n')) frames.push(frame)
      }
      for (const { count, done } of waiting) if (frames.length >= count) done()
    }
  }
  const end = read().catch(() => undefined)
  return {
    run: response.headers.get('x-millrace-run-id')!,
    frames: () => [...frames],
    end,
    reaches: (count) =>
      frames.length >= count
        ? Promise.resolve()
        : new Promise((done, fail) => {
            waiting.push({ count, done })
            void end.then(() => fail(new Error(`the stream ended after ${frames.length} frames`)))
          }),
  }
}

/** The number of the last event. */
export function lastNumberOf(frames: readonly string[]): number {
  return Number([...frames.join('').matchAll(/"sequence_number":(\d+)/gu)].at(-1)?.[1])
}

/** All that a reader gets which was there from the start. `model`: as the client named it. */
export function responseFrames(entries: readonly Entry[], model: string): string {
  const encoder = responsesWire.createEncoder({}, { model })
  return entries.map((entry) => encoder.encode(entry)).join('')
}
