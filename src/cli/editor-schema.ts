/** `millrace.schema.json` beside the agents: the schema that the first line of an agent file refers to. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRegistry, knownNames } from '../project/registry.ts'
import { agentJsonSchema } from '../pipeline/agent-schema.ts'
import { loadConfig } from '../project/load-config.ts'

export const schemaFile = 'millrace.schema.json'

/** JSON Schema of an agent file, with the names from the folder's config. Without such a folder, any name is valid. */
export async function editorSchema(dir: string): Promise<string> {
  return `${JSON.stringify(agentJsonSchema(await namesIn(dir)), null, 2)}\n`
}

async function namesIn(dir: string) {
  if (!existsSync(dir)) return undefined
  // Agent names are left out: an agent added later must not be an error in this schema. `check` checks them.
  const config = await loadConfig(dir)
  const { agents: _, ...names } = knownNames(createRegistry(config, process.env), config, [])
  return names
}

/** Updates an existing schema file that is out of date. Returns its path if it was written. */
export async function refreshSchema(dir: string): Promise<string | undefined> {
  const path = join(dir, schemaFile)
  if (!existsSync(path)) return undefined
  const schema = await editorSchema(dir)
  if (readFileSync(path, 'utf8') === schema) return undefined
  writeFileSync(path, schema)
  return path
}
