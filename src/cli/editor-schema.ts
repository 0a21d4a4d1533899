/** `millrace.schema.json` beside the agents: what the first line of an agent points its editor to. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRegistry, knownNames } from '../library/registry.ts'
import { agentJsonSchema } from '../pipeline/agent-schema.ts'
import { loadConfig } from '../server/load-config.ts'

export const schemaFile = 'millrace.schema.json'

/** JSON Schema of an agent file with the names of the folder's config; without such a folder any name is right. */
export async function editorSchema(dir: string): Promise<string> {
  return `${JSON.stringify(agentJsonSchema(await namesIn(dir)), null, 2)}\n`
}

async function namesIn(dir: string) {
  if (!existsSync(dir)) return undefined
  // An agent that is written tomorrow must not be a mistake in today's schema: `check` knows which there are.
  const config = await loadConfig(dir)
  const { agents: _, ...names } = knownNames(createRegistry(config, process.env), config, [])
  return names
}

/** Writes the schema anew where there is one that says something else. Gives the file that it wrote. */
export async function refreshSchema(dir: string): Promise<string | undefined> {
  const path = join(dir, schemaFile)
  if (!existsSync(path)) return undefined
  const schema = await editorSchema(dir)
  if (readFileSync(path, 'utf8') === schema) return undefined
  writeFileSync(path, schema)
  return path
}
