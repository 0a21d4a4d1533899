/** `npm run chaos -- --seconds 3600 --seed N`: chaos by hand, in sessions of a minute, each with a seed of its own. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chaos } from './chaos.ts'
import { faultKinds, type FaultKind } from './faults.ts'

const usage = `npm run chaos [-- options]

  --seconds n      how long in all (default 60)
  --session n      seconds of one session, which has one seed (default 60)
  --seed n         the first session's seed (default: by the clock); each further one has the next
  --kinds a,b      only these faults: ${faultKinds.join(', ')}
  --clients n      conversations at the same time (default 6)
  --verbose        print what happens while it happens
`

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    session: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    kinds: { type: 'string', default: faultKinds.join() },
    clients: { type: 'string', default: '6' },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const say = (line: string) => process.stdout.write(`${line}\n`)

function kindsOf(text: string): FaultKind[] {
  return text.split(',').map((word) => {
    const kind = faultKinds.find((each) => each === word)
    if (kind === undefined) throw new Error(`There is no fault "${word}". Faults: ${faultKinds.join(', ')}.`)
    return kind
  })
}

async function main(): Promise<void> {
  if (values.help) return void process.stdout.write(usage)
  const kinds = kindsOf(values.kinds)
  const end = performance.now() + Number(values.seconds) * 1000
  for (let seed = Number(values.seed); performance.now() < end; seed++) {
    const seconds = Math.min(Number(values.session), Math.max(5, (end - performance.now()) / 1000))
    const clients = Number(values.clients)
    const { faults, runs, moves, refusals, resets, outcomes, log } = await chaos({
      seed,
      seconds,
      kinds,
      clients,
      ...(values.verbose ? { say } : undefined),
    })
    const ended = Object.entries(outcomes).map(([outcome, count]) => `${count} ${outcome}`)
    say(
      `seed ${seed}: ${runs} runs (${ended.join(', ')}), ${moves} moves, ${refusals} refusals, ${resets} resets, ${faults.length} faults`,
    )
    if (faults.length === 0) continue
    const file = join(mkdtempSync(join(tmpdir(), 'millrace-chaos-')), `seed-${seed}.log`)
    writeFileSync(file, `${log.join('\n')}\n`)
    for (const fault of faults.slice(0, 20)) say(`  ${fault}`)
    say(`  all of it: ${file}`)
    process.exitCode = 1
  }
}

await main()
