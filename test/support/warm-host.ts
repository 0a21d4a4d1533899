/**
 * A process that has the built command loaded and runs one command line after the other, each with its own folder, environment,
 * input and output. `warm-command.ts` starts it.
 */
import { Readable, Writable } from 'node:stream'

export interface WarmRequest {
  args: string[]
  cwd: string
  env: Record<string, string>
  input: string
}

export interface WarmReply {
  code: number
  out: string
  err: string
}

const command = new URL('../../dist/cli/main.js', import.meta.url).href
const { main } = (await import(command)) as { main(argv: string[]): Promise<void> }
const home = process.cwd()
/** Thrown where a process would have ended. */
const ended = new Error('The command has ended.')
const events = ['SIGINT', 'SIGTERM', 'SIGHUP', 'exit', 'uncaughtException', 'unhandledRejection'] as const

function run({ args, cwd, env, input }: WarmRequest): Promise<WarmReply> {
  return new Promise((resolve) => {
    const before = new Map(events.map((event) => [event, process.listeners(event as 'exit')]))
    let isOver = false
    const text = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      const stream = new Writable({
        decodeStrings: false,
        write(chunk: string | Buffer, _, done) {
          if (!isOver) text[name] += chunk.toString()
          done()
        },
      })
      Object.defineProperty(process, name, { configurable: true, value: stream })
    }
    Object.defineProperty(process, 'stdin', { configurable: true, value: Readable.from([Buffer.from(input)]) })
    for (const name of Object.keys(process.env)) delete process.env[name]
    Object.assign(process.env, env)
    process.chdir(cwd)
    process.exitCode = undefined
    function finish(code: number): void {
      if (isOver) return
      isOver = true
      for (const [event, kept] of before) {
        for (const listener of process.listeners(event as 'exit'))
          if (!kept.includes(listener)) process.off(event, listener)
      }
      // The folder may be removed now.
      process.chdir(home)
      process.exitCode = undefined
      resolve({ code, out: text.stdout, err: text.stderr })
    }
    process.exit = ((code?: number) => {
      finish(code ?? Number(process.exitCode ?? 0))
      throw ended
    }) as typeof process.exit
    main([process.execPath, 'millrace', ...args]).then(
      // What is written last may end the process in its callback.
      () => setImmediate(() => finish(Number(process.exitCode ?? 0))),
      (error: unknown) => {
        text.stderr += `millrace: ${(error as Error).message}\n`
        finish(1)
      },
    )
  })
}

for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    if (error === ended) return
    process.send!({ fault: (error as Error).stack ?? String(error) })
  })
}
process.on('message', (request: WarmRequest) => void run(request).then((reply) => process.send!(reply)))
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.send!('ready')
