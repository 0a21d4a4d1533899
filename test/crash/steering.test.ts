/** A message into a running turn, whose server is killed (SIGKILL) and started again on the same folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, onTestFinished, test } from 'vitest'
import { spawnServer } from '../support/server-process.ts'
import { createHeldModel, killAgents, killPlaces } from '../support/steering-kills.ts'
import { startUpstream } from '../support/upstream.ts'

const config = `export default { tools: { buy: { parameters: { type: 'object' }, execute: () => 'done' } } }`

describe('a message into a running turn, and a kill', () => {
  test.each(Object.keys(killPlaces))('%s', { timeout: 60_000 }, async (place) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-steer-'))
    mkdirSync(join(dir, 'agents'))
    for (const [name, yaml] of Object.entries(killAgents)) writeFileSync(join(dir, 'agents', `${name}.yaml`), yaml)
    writeFileSync(join(dir, 'agents', 'millrace.config.mjs'), config)
    const model = createHeldModel()
    const upstream = await startUpstream(model.answer)
    const boot = () => spawnServer(join(dir, 'agents'), join(dir, 'data'), '--endpoint', `up=${upstream.baseURL}`)
    let server = await boot()
    onTestFinished(async () => {
      await server.kill()
      await upstream.close()
      rmSync(dir, { recursive: true, force: true })
    })
    const kill = async () => {
      await server.kill()
      server = await boot()
    }
    await killPlaces[place]!({ urls: () => [server.url], kill }, model)
  })
})
