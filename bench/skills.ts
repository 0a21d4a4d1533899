/**
 * What skills cost when the agents of a folder are loaded: an agent with 100 skills, beside the same agent without. CPU, because reading many small
 * files waits for the disk. Run with `npm run bench -- skills`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Known } from '../src/pipeline/pipeline.ts'
import { openAgentFolder } from '../src/project/agents-folder.ts'
import { answerCalls } from './calls.ts'
import type { Options, Result, ResultRow } from './scenario.ts'

const count = 100
/** Loads before the first that counts: a server has optimised its code after some. */
const warmUp = 30
const loads = 20

const known: Known = { stepTypes: [], tools: [], callbacks: [], providers: ['m'] }
const agent = 'workflow: [{ id: a, type: llm, config: { model: "m:a", stream: true } }]\n'

async function measure({ rounds = 7 }: Options): Promise<Result[]> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const without = join(dir, 'without')
  const having = join(dir, 'with')
  mkdirSync(without)
  writeFileSync(join(without, 'a.yaml'), agent)
  for (let i = 0; i < count; i++) {
    const folder = join(having, `skills/skill-${i}`)
    mkdirSync(folder, { recursive: true })
    const description = 'Use it when a form is to be filled. '.repeat(8)
    writeFileSync(
      join(folder, 'SKILL.md'),
      `---\nname: skill-${i}\ndescription: ${description}\nlicense: MIT\n---\n${'Do it like this. '.repeat(200)}`,
    )
  }
  writeFileSync(join(having, 'a.yaml'), `skills: [skills/*]\n${agent}`)
  const rows: ResultRow[] = [
    { name: 'without', title: 'an agent', samples: [] },
    { name: 'with', title: `the same with ${count} skills`, samples: [] },
  ]
  try {
    for (let i = 0; i < warmUp; i++) for (const folder of [without, having]) load(folder)
    for (let round = 0; round < rounds; round++) {
      for (const [i, folder] of [without, having].entries()) rows[i]!.samples.push({ ms: msOf(folder) })
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'skills',
      title: `CPU ms to load a folder with one agent; medians of ${rounds} rounds of ${loads} loads`,
      reference: 'without',
      columns: [{ key: 'ms', title: 'CPU ms', digits: 2, ratio: false }],
      rows,
      notes: ['The files are in the file cache, and the code is warm.'],
    },
  ]
}

function load(folder: string): void {
  const { errors, close } = openAgentFolder(folder, known)
  close()
  if (errors.length > 0) throw new Error(errors[0]!.message)
}

function msOf(folder: string): number {
  const before = process.cpuUsage()
  for (let i = 0; i < loads; i++) load(folder)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / loads
}

answerCalls({ measure })
