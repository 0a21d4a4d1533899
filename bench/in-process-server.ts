/**
 * A model server without sockets: the bytes that `upstream.ts` would send, given to whoever asks undici's global dispatcher. What it
 * hands over is what undici makes of a socket: one piece for each HTTP chunk, which is one delta, and up to 64 KB in a turn.
 */
import { deltaChunk, lastChunks, roleChunk } from './chat-chunks.ts'
import { deltaText } from './deltas.ts'
import type { Pattern } from './in-process-model.ts'

/** What a request is given, as by undici. */
interface Handler {
  onConnect(abort: () => void): void
  onHeaders(status: number, headers: Buffer[], resume: () => void, statusText: string): boolean
  /** `false`: no more until `resume` is called. */
  onData(bytes: Buffer): boolean
  onComplete(trailers: Buffer[]): void
}

const key = Symbol.for('undici.globalDispatcher.1')
const socketRead = 64 * 1024
const headers = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache'].map((text) =>
  Buffer.from(text),
)

export const baseURL = 'http://bench/v1'

/** From now on, all requests of this process to models are answered with so many deltas. */
export function answerRequests(deltas: number, pattern: Pattern): void {
  const pieces = piecesOf(deltas)
  const dispatcher = {
    dispatch(_: unknown, handler: Handler) {
      const answer = new Answer(pieces, handler)
      setImmediate(() => answer.begin(pattern))
      return true
    },
  }
  // Node makes its own one, which this one replaces, when one of its globals is first used.
  void globalThis.Headers
  Object.assign(globalThis, { [key]: dispatcher })
}

function piecesOf(deltas: number): Buffer[] {
  const said = Array.from({ length: deltas }, (_, i) => deltaChunk(deltaText(i)))
  return [roleChunk, ...said, ...lastChunks(deltas)].map((data) => Buffer.from(`data: ${data}\n\n`))
}

/** Answers that get one piece in each turn. */
const speaking = new Set<Answer>()

function turn(): void {
  for (const answer of speaking) if (!answer.give(1)) speaking.delete(answer)
  if (speaking.size > 0) setImmediate(turn)
}

class Answer {
  readonly #pieces: readonly Buffer[]
  readonly #handler: Handler
  #next = 0
  #isPaused = false
  #isOver = false

  constructor(pieces: readonly Buffer[], handler: Handler) {
    this.#pieces = pieces
    this.#handler = handler
  }

  begin(pattern: Pattern): void {
    this.#handler.onConnect(() => (this.#isOver = true))
    const resume = () => {
      if (!this.#isPaused) return
      this.#isPaused = false
      if (pattern === 'burst') setImmediate(this.#read)
    }
    this.#handler.onHeaders(200, headers, resume, 'OK')
    if (pattern === 'burst') return this.#read()
    if (speaking.size === 0) setImmediate(turn)
    speaking.add(this)
  }

  /** One read of a socket that has everything. */
  readonly #read = (): void => {
    if (this.give(socketRead) && !this.#isPaused) setImmediate(this.#read)
  }

  /** Hands over so many bytes and a little more. Returns whether there is more. */
  give(bytes: number): boolean {
    for (let given = 0; given < bytes && !this.#isPaused && !this.#isOver;) {
      const piece = this.#pieces[this.#next++]
      if (piece === undefined) {
        this.#handler.onComplete([])
        return false
      }
      given += piece.length
      this.#isPaused = !this.#handler.onData(piece)
    }
    return !this.#isOver
  }
}
