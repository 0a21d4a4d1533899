/**
 * Plays a CLI agent: prints the lines of a session, or misbehaves as `--mode=…` says. Run by Node as `claude`, `codex`, `gemini` or `qwen`;
 * `installFakes` puts these names on a PATH.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, writeFileSync } from 'node:fs'
import { sessions } from './sessions.ts'

const name = process.env['FAKE_NAME'] ?? 'claude'
const flags = new Map(
  process.argv.flatMap((each) => {
    const [, key, value] = /^--(mode|latch|report|session)=(.*)$/su.exec(each) ?? []
    return key === undefined ? [] : [[key, value!] as const]
  }),
)
const mode = flags.get('mode') ?? 'normal'
const lines = sessions[(flags.get('session') ?? name) as keyof typeof sessions].map(
  (line) => `${JSON.stringify(line)}\n`,
)
const isResult = (line: string) => /^\{"type":"(?:result|turn\.completed)"/u.test(line)
const forever = () => setInterval(() => undefined, 1_000_000)

const stdin = await new Promise<string>((resolve) => {
  let text = ''
  process.stdin
    .setEncoding('utf8')
    .on('data', (more) => (text += more))
    .on('end', () => resolve(text))
})
const report = flags.get('report')
if (report !== undefined) {
  const { argv, env } = process
  appendFileSync(
    report,
    `${JSON.stringify({ pid: process.pid, argv: argv.slice(2), env, cwd: process.cwd(), stdin })}\n`,
  )
}

/** Waits until the test lets it go on, and says where it is. */
async function pass(at: number | string): Promise<void> {
  const latch = flags.get('latch')
  if (latch !== undefined) await fetch(`${latch}/${at}`)
}

function print(text: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => void process.stdout.write(text, () => resolve()))
}

async function play(all: readonly string[]): Promise<void> {
  for (const [i, line] of all.entries()) {
    await pass(i)
    await print(line)
  }
}

/** A child of ours that no SIGTERM ends; it keeps our pipes open. `far`: in a session of its own. */
function grandchild(far: boolean): Promise<void> {
  const code = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6); process.stdout.write('')
    require('node:fs').writeFileSync(process.argv[1], String(process.pid))`
  const file = `${report}.grandchild`
  spawn(process.execPath, ['-e', code, file], { stdio: 'inherit', detached: far })
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      try {
        if (process.getBuiltinModule('node:fs').readFileSync(file, 'utf8') === '') return
      } catch {
        return
      }
      clearInterval(timer)
      resolve()
    }, 5)
  })
}

switch (mode) {
  case 'normal':
    await play(lines)
    break
  case 'no-result':
    await play(lines.filter((line) => !isResult(line)))
    break
  case 'hang-after-result':
    await play(lines)
    forever()
    break
  case 'exit-1':
    await play(lines)
    process.exitCode = 1
    break
  case 'exit-1-mid-line':
    await play(lines.slice(0, 5))
    await print(lines[5]!.slice(0, 20))
    process.exitCode = 1
    break
  case 'killed':
    await play(lines.slice(0, 5))
    process.kill(process.pid, 'SIGKILL')
    forever()
    break
  case 'interrupted':
    await play(lines.slice(0, 5))
    process.exitCode = 130
    break
  case 'silent':
    await play(lines.slice(0, 5))
    await pass('silent')
    forever()
    break
  case 'ignore-term':
    process.on('SIGTERM', () => undefined)
    await play(lines.slice(0, 5))
    await pass('silent')
    forever()
    break
  case 'grandchild':
  case 'far-grandchild':
    process.on('SIGTERM', () => undefined)
    await grandchild(mode === 'far-grandchild')
    await play(lines.slice(0, 5))
    await pass('silent')
    forever()
    break
  case 'grandchild-stays':
    await grandchild(false)
    await play(lines)
    process.exit(0)
    break
  case 'bytes':
    // Through a pipe, byte by byte: characters are cut at every byte.
    for (const byte of Buffer.from(lines.join(''))) await print(Uint8Array.of(byte))
    break
  case 'stderr': {
    await print(lines[0]!)
    const line = `${'e'.repeat(1023)}\n`
    for (let i = 0; i < 1024; i++) await new Promise<void>((done) => void process.stderr.write(line, () => done()))
    for (const each of lines.slice(1)) await print(each)
    break
  }
  case 'flood': {
    await print(lines[0]!)
    const line = `${JSON.stringify({ type: 'system', subtype: 'note', text: 'x'.repeat(1024 * 1024) })}\n`
    for (let i = 0; i < 200; i++) {
      await print(line)
      if (report !== undefined) writeFileSync(`${report}.flood`, String(i + 1))
    }
    break
  }
  default:
    throw new Error(`no mode ${mode}`)
}
