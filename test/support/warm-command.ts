/**
 * Runs command lines in one process that stays, since most of a short command's time is its start. The first time that a process
 * of tests runs a command, it is a process of its own, and so is whatever a process that stays could show differently.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { WarmReply, WarmRequest } from './warm-host.ts'

const seen = new Set<string>()
let host: ChildProcess | undefined
let isBusy = false

/** Undefined: a process of its own has to run it. */
export async function runWarm(request: WarmRequest, isFirstWarm = false): Promise<WarmReply | undefined> {
  const word = request.args.find((arg) => !arg.startsWith('-')) ?? ''
  if (!isFirstWarm && !seen.has(word)) {
    seen.add(word)
    return undefined
  }
  if (isBusy || word === 'serve' || Object.keys(request.env).some((name) => name.startsWith('NODE'))) return undefined
  // A process loads a config once, and its code may leave things behind.
  if (
    ['.', 'agents'].some((dir) =>
      ['mjs', 'js', 'ts'].some((kind) => existsSync(join(request.cwd, dir, `millrace.config.${kind}`))),
    )
  )
    return undefined
  isBusy = true
  try {
    host ??= await startHost()
    return await ask(host, request)
  } finally {
    isBusy = false
  }
}

async function startHost(): Promise<ChildProcess> {
  const { PATH, HOME, TMPDIR } = process.env
  const child = fork(join(import.meta.dirname, 'warm-host.ts'), {
    env: { PATH, HOME, TMPDIR },
    execArgv: [],
    stdio: 'inherit',
  })
  await new Promise((resolve) => child.once('message', resolve))
  return child
}

function ask(child: ChildProcess, request: WarmRequest): Promise<WarmReply> {
  return new Promise((resolve, reject) => {
    const answered = (reply: WarmReply | { fault: string }) => {
      settle()
      if ('fault' in reply) reject(new Error(`A command left an error behind: ${reply.fault}`))
      else resolve(reply)
    }
    const gone = () => {
      settle()
      reject(new Error(`millrace ${request.args.join(' ')}: the process is gone`))
    }
    function settle(): void {
      child.off('message', answered)
      child.off('exit', gone)
      if (child.exitCode !== null || child.signalCode !== null) host = undefined
    }
    child.on('message', answered)
    child.on('exit', gone)
    child.send(request)
    // What still runs when its test has ended must not be in the way of the next.
    onTestFinished(() => {
      if (child.listeners('message').includes(answered)) child.kill('SIGKILL')
    })
  })
}
