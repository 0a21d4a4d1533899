/**
 * Runs the list of attacks in a process of its own and prints what came of each, as one JSON text. Meanwhile, harmless scripts run in the same pool as an engine
 * would run them: dropped ones again, from the log.
 */
import { createSandboxPool } from '../pool.ts'
import { ScriptDropped } from '../sandbox.ts'
import { forgeries, nativeLoops, recursions, replacements } from './attacks.ts'
import { runScript, type Ran, type RunOptions } from './run-script.ts'

const pool = createSandboxPool()
let drops = 0

async function runAgain(code: string, options: RunOptions = {}): Promise<Ran> {
  for (;;) {
    try {
      return await runScript(pool, code, options)
    } catch (error) {
      if (!(error instanceof ScriptDropped) || error.reason !== 'worker') throw error
      drops++
    }
  }
}

const short = ({ value, error, calls, console }: Ran) => ({
  ...(error === undefined ? { value } : { error: error.code, message: error.message }),
  calls: calls.map(({ n, kind, name, input }) => `${n} ${kind} ${name} ${input.slice(0, 100)}`).slice(0, 5),
  console: console.map(({ text }) => text.slice(0, 100)).slice(0, 3),
})

const before = Reflect.ownKeys(Object.prototype).length + Reflect.ownKeys(globalThis).length
let isOver = false
const victims = { done: 0, wrong: 0 }
const harmless = (async () => {
  for (let id = 0; !isOver; id++) {
    const code =
      'const a = []\nfor (let i = 0; i < 5; i++) a.push((await tools.orders({ i: i + input.id })).i)\nreturn a'
    const { value } = await runAgain(code, { input: { id }, seed: `${id}` })
    victims.done++
    if (JSON.stringify(value) !== JSON.stringify([0, 1, 2, 3, 4].map((i) => i + id))) victims.wrong++
  }
})()

/** In ms. What ends by itself gets the time for it. */
const times: Record<string, number> = { recursions: 5000, nativeLoops: 100 }
const results: Record<string, Record<string, unknown>> = {}
for (const [list, attacks] of Object.entries({ recursions, replacements, forgeries, nativeLoops })) {
  const found: Record<string, unknown> = (results[list] = {})
  for (const [name, code] of Object.entries(attacks)) {
    const body = list === 'recursions' ? `try { ${code}\n return 'no error' } catch (e) { return e.name }` : code
    found[name] = short(await runAgain(body, { limits: { time: times[list] ?? 300 } }))
  }
}
isOver = true
await harmless
await pool.close()
const after = Reflect.ownKeys(Object.prototype).length + Reflect.ownKeys(globalThis).length
console.log(JSON.stringify({ results, victims, drops, isPolluted: before !== after || 'polluted' in {} }))
