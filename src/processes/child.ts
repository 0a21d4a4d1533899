/** One child process: its pipes, its process group, and its end. */
import type { ChildProcess } from 'node:child_process'
import { killMarked, signalGroup } from './process-table.ts'
import type { OutputStream, ProcessExit } from './processes.ts'

/** ms from SIGTERM to SIGKILL. */
const termGrace = 2000
/** ms without output after which the pipes of an exited process are given up: another process holds them. */
const pipeGrace = 200

export interface Child {
  readonly exit: Promise<ProcessExit>
  stop(): void
  kill(): void
}

export interface ChildOptions {
  child: ChildProcess
  mark: string
  onOutput(stream: OutputStream, bytes: Uint8Array): Promise<void> | undefined
  /** Called before `exit` resolves. Must not reject. */
  onGone(): Promise<void>
}

/** Takes over a process that runs. */
export function watchChild({ child, mark, onOutput, onGone }: ChildOptions): Child {
  const pid = child.pid!
  const streams = [child.stdout!, child.stderr!]
  const { promise: exit, resolve } = Promise.withResolvers<ProcessExit>()
  let how: ProcessExit | undefined
  let stopping = false
  let held = false
  let lastOutput = 0
  let killTimer: ReturnType<typeof setTimeout> | undefined
  let pipeTimer: ReturnType<typeof setTimeout> | undefined

  function take(stream: OutputStream, bytes: Uint8Array): void {
    lastOutput = performance.now()
    if (stopping) return
    const behind = onOutput(stream, bytes)
    if (behind === undefined || held) return
    held = true
    for (const each of streams) each.pause()
    void behind.then(go, go)
  }

  function go(): void {
    held = false
    lastOutput = performance.now()
    for (const each of streams) each.resume()
  }

  // Killing comes first: whoever holds the pipes would keep them from ending.
  async function end(): Promise<void> {
    clearTimeout(killTimer)
    clearInterval(pipeTimer)
    signalGroup(pid, 'SIGKILL')
    await killMarked(mark)
    for (const each of child.stdio) each?.destroy()
    await onGone()
    resolve(how!)
  }

  child.stdout!.on('data', (bytes: Buffer) => take('stdout', bytes))
  child.stderr!.on('data', (bytes: Buffer) => take('stderr', bytes))
  // A broken pipe means that the process ends, or that it does not read its input. Its exit says more.
  for (const each of child.stdio) each?.on('error', () => undefined)
  let ended = false
  const endOnce = () => {
    if (ended) return
    ended = true
    void end()
  }
  child.once('exit', (code, signal) => {
    how = { code, signal }
    lastOutput = performance.now()
    pipeTimer = setInterval(() => {
      if (!held && performance.now() - lastOutput >= pipeGrace) endOnce()
    }, pipeGrace / 4)
  })
  child.once('close', endOnce)

  return {
    exit,
    stop() {
      if (stopping) return
      stopping = true
      if (held) go()
      if (how !== undefined) return
      signalGroup(pid, 'SIGTERM')
      killTimer = setTimeout(() => signalGroup(pid, 'SIGKILL'), termGrace)
    },
    kill() {
      stopping = true
      if (held) go()
      if (how === undefined) signalGroup(pid, 'SIGKILL')
    },
  }
}
