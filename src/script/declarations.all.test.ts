import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { declareScope, describeTools } from './declarations.ts'
import { declaredTools, manyTools, strangeTools } from './testing/declared-tools.ts'

const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))

/** What `tsc --strict` says of files, without the library of browsers. */
function faultsOf(files: Record<string, string>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-declarations-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const flags = ['--strict', '--noEmit', '--target', 'es2024', '--lib', 'es2024', '--types', '', '--singleThreaded']
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, ...flags, ...Object.keys(files)], { cwd: folder }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    )
  })
}

const script = `
export async function main() {
  const open = input.rows.filter((row) => row.state === 'open')
  const orders = await Promise.all(open.map((row) => tools.orders({ id: row.id })))
  console.log(orders.length, 'orders')
  if (orders.length > 100 && !(await ask('Go on with ' + orders.length + ' orders?'))) return { count: 0, sum: 0 }
  const found = await tools.crm_find({ words: null, near: [1, 2] })
  await tools['refund-now']({ anything: found.first }); const pong: string = await tools.ping(); await tools.crm_find()
  const text: string = await describe(pong)
  return { count: orders.length, sum: orders.reduce((sum, { total }) => sum + total, text.length) }
}`
const input = {
  type: 'object',
  properties: {
    rows: {
      type: 'array',
      items: {
        type: 'object',
        properties: { state: { type: 'string' }, id: { type: 'integer' } },
        required: ['state', 'id'],
      },
    },
  },
  required: ['rows'],
}

test('declarations compile with tsc --strict, and a script over them', async () => {
  expect(await faultsOf({ 'scope.d.ts': declareScope(declaredTools, { input }), 'script.ts': script })).toBe('')
})

test('a script that uses a tool wrongly does not', async () => {
  const wrong =
    'export const a = async () => { await tools.orders({ id: "1" }); await tools.order({}); (await tools.orders({ id: 1 })).state === "shut" }'
  const faults = await faultsOf({ 'scope.d.ts': declareScope(declaredTools), 'wrong.ts': wrong })
  expect(faults.match(/error TS\d+/gu)).toEqual(['error TS2322', 'error TS2551', 'error TS2367'])
})

test('declarations of strange and of many tools compile as well', async () => {
  for (const scope of [
    declareScope(strangeTools.slice(0, -1)),
    declareScope(manyTools(100)),
    declareScope(manyTools(1000)),
    declareScope([strangeTools.at(-1)!]),
  ]) {
    expect(await faultsOf({ 'scope.d.ts': scope })).toBe('')
  }
  expect(await faultsOf({ 'tools.d.ts': describeTools(manyTools(30), 'tool') })).toBe('')
  expect(await faultsOf({ 'tool.d.ts': describeTools(strangeTools, 'big') })).toBe('')
})
