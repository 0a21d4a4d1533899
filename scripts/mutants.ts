/** `npm run mutants`: puts each fault of `mutants/mutants.json` into a copy of the source and sees whether a test fails. */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { applyMutant, listFile, readList, type Mutant, type SeenBy } from './mutants/mutant.ts'
import { runTests, type TestRun } from './mutants/run-tests.ts'
import { orderedSites, rooms, type Room } from './mutants/sites.ts'
import { makeWorkCopy, type WorkCopy } from './mutants/work-copy.ts'

const usage = `npm run mutants -- [options] [-- <options of vitest>]

  --only <id,…>     these mutants only
  --tests <filter>  only test files whose path contains it
  --all             tests of "npm run test:all" too; no mutant may live
  --record          write down which tests see each mutant, up to three files
  --next <room>     print what the seed offers next in a room: ${rooms.join(', ')}`

/** With the tests of `npm test` alone, so many may live: Redis is left to `npm run test:all`. */
const mayLive = 2
const root = resolve(import.meta.dirname, '..')

const { values, positionals: more } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string' },
    tests: { type: 'string' },
    all: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    next: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const options = [...(values.all ? ['--project=all*'] : ['--project=fast', '--project=fast-own']), ...more]
/** More than one test that sees a mutant is good to know, and not worth waiting long for. In seconds. */
const patience = 90

/** Those that have seen it before, those beside it, those that load it, all: the cheapest first. */
function stagesOf({ file, seenBy }: Mutant, files: number): TestRun[] {
  const run = (minutes: number, ...args: string[]): TestRun => ({
    args: [...args, ...options],
    files,
    seconds: minutes * 60,
    more: patience,
  })
  if (values.tests !== undefined) return [run(30, 'run', values.tests)]
  const [first, ...others] = values.record ? [] : seenBy.map((seen) => seen.file)
  const own = file.replace(/\.ts$/u, '.test.ts')
  const beside = globSync(`${dirname(file)}/*.test.ts`, { cwd: root })
  const groups = [[first], [...others, own], beside].map((group) =>
    group.filter((each) => each !== undefined && existsSync(join(root, each))),
  ) as string[][]
  const nearest = groups.filter((group) => group.length > 0).map((group) => run(10, 'run', ...group))
  return [...nearest, run(30, 'related', file), run(120, 'run')]
}

async function main(stop: AbortSignal): Promise<number> {
  const list = readList()
  const asked = values.only?.split(',')
  const unknown = asked?.find((id) => !list.mutants.some((mutant) => mutant.id === id))
  if (unknown !== undefined) throw new Error(`--only: there is no mutant "${unknown}" in ${listFile.pathname}`)
  const copy = makeWorkCopy(root)
  try {
    // All are applied before the first test runs: one whose text is gone is told at once.
    const chosen = list.mutants
      .filter(({ id }) => asked?.includes(id) ?? true)
      .map((mutant) => {
        const text = readFileSync(join(copy.folder, mutant.file), 'utf8')
        return { mutant, text, mutated: applyMutant(text, mutant) }
      })
    const rows: Row[] = []
    for (const [at, { mutant, text, mutated }] of chosen.entries()) {
      process.stderr.write(`${at + 1}/${chosen.length} ${mutant.id} (${mutant.file})\n`)
      const began = performance.now()
      const place = join(copy.folder, mutant.file)
      const seen = await look(copy, mutant, stop, async (run) => {
        writeFileSync(place, mutated)
        const found = await runTests(copy, run, stop)
        writeFileSync(place, text)
        return found
      })
      rows.push({ mutant, seen, seconds: (performance.now() - began) / 1000 })
      process.stderr.write(`  ${seen.map(({ file, test }) => `${file} › ${test}`).join('\n  ') || 'alive'}\n`)
      if (values.record) {
        mutant.seenBy = seen
        writeFileSync(listFile, `${JSON.stringify(list, undefined, 2)}\n`)
      }
    }
    return report(rows)
  } finally {
    copy.remove()
  }
}

/** The tests that see a mutant, one of a file. */
async function look(
  copy: WorkCopy,
  mutant: Mutant,
  stop: AbortSignal,
  runMutated: (run: TestRun) => Promise<SeenBy[]>,
): Promise<SeenBy[]> {
  const enough = values.record ? 3 : 1
  const seen: SeenBy[] = []
  const stages = stagesOf(mutant, enough)
  for (const stage of stages) {
    const isFirst = seen.length === 0
    if (!isFirst && stage === stages.at(-1)) break
    const args = [...stage.args, ...seen.flatMap(({ file }) => ['--exclude', file])]
    const seconds = isFirst ? stage.seconds : patience
    for (const failure of await runMutated({ ...stage, args, files: enough - seen.length, seconds })) {
      const { file, test } = failure
      if (file === '' && !isFirst) continue
      if (!(await passesWithout(copy, file, stop))) throw new Error(`${file} fails without a mutant too: ${test}`)
      seen.push(failure)
    }
    if (seen.length >= enough) break
  }
  return seen.slice(0, enough)
}

const passing = new Map<string, boolean>()

/** A test that fails without a mutant says nothing about one. */
async function passesWithout(copy: WorkCopy, file: string, stop: AbortSignal): Promise<boolean> {
  if (file === '') return true
  const run = { args: ['run', file, ...options], files: 1, seconds: 600 }
  const passes = passing.get(file) ?? (await runTests(copy, run, stop)).length === 0
  passing.set(file, passes)
  return passes
}

interface Row {
  mutant: Mutant
  seen: readonly SeenBy[]
  seconds: number
}

function report(rows: readonly Row[]): number {
  for (const { mutant, seen, seconds } of rows) {
    const how = seen[0] === undefined ? 'ALIVE' : `${seen[0].file} › ${seen[0].test}`
    console.log(`${mutant.id.padEnd(28)} ${seconds.toFixed(0).padStart(4)} s  ${how}`)
  }
  const alive = rows.filter(({ seen }) => seen.length === 0).map(({ mutant }) => mutant)
  for (const { id, file, breaks } of alive) console.log(`\n${id} lives in ${file}: ${breaks}`)
  console.log(`\n${rows.length - alive.length} of ${rows.length} mutants were seen`)
  return alive.length > (values.all ? 0 : mayLive) ? 1 : 0
}

function printNext(room: Room): void {
  const { seed, mutants, rejected } = readList()
  const known = new Set(
    [...mutants, ...rejected].map(({ file, original, replacement }) => `${file}\n${original}\n${replacement}`),
  )
  const fresh = orderedSites(root, room, seed).filter(
    ({ file, original, replacement }) => !known.has(`${file}\n${original}\n${replacement}`),
  )
  for (const site of fresh.slice(0, 5)) console.log(JSON.stringify(site, undefined, 2))
}

const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort(new Error(signal)))
if (values.help) console.log(usage)
else if (values.next !== undefined) {
  const room = rooms.find((each) => each === values.next)
  if (room === undefined) throw new Error(`--next: "${values.next}" is none of ${rooms.join(', ')}`)
  printNext(room)
} else process.exitCode = await main(stopped.signal)
