/** A message into a running turn, whose server is killed (SIGKILL) and started again on the same folder. */
import { describe, test } from 'vitest'
import { startKillableServer } from '../support/killable-server.ts'
import { createHeldModel, killAgents, killPlaces } from '../support/steering-kills.ts'

const config = `export default { tools: { buy: { parameters: { type: 'object' }, execute: () => 'done' } } }`
const agents = Object.entries(killAgents).map(([name, yaml]) => [`${name}.yaml`, yaml])

describe('a message into a running turn, and a kill', () => {
  test.each(Object.keys(killPlaces))('%s', { timeout: 60_000 }, async (place) => {
    const model = createHeldModel()
    const files = { ...Object.fromEntries(agents), 'millrace.config.mjs': config }
    const server = await startKillableServer(files, model.answer)
    const kill = async () => {
      await server.kill()
      await server.start()
    }
    await killPlaces[place]!({ urls: () => [server.url], kill }, model)
  })
})
