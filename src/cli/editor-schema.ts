/** `millrace.schema.json` beside the agents: the schema that the first line of an agent file refers to. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandContext } from './context.ts'
import { schemaFile } from './paths.ts'
import { createRegistry, knownNames } from '../project/registry.ts'
import { agentJsonSchema } from '../pipeline/agent-schema.ts'
import { loadConfig } from '../project/load-config.ts'

/** JSON Schema of an agent file, with the names from the folder's config. Without such a folder, any name is valid. */
export async function editorSchema(context: CommandContext, dir: string): Promise<string> {
  return `${JSON.stringify(agentJsonSchema(await namesIn(context, dir)), null, 2)}\n`
}

async function namesIn(context: CommandContext, dir: string) {
  if (!existsSync(context.path(dir))) return undefined
  // Agent names are left out: an agent added later must not be an error in this schema. `check` checks them.
  const config = await loadConfig(context.path(dir))
  const { agents: _, ...names } = knownNames(createRegistry(config, context.env), config, [])
  return names
}

/** Updates an existing schema file that is out of date. Returns its path if it was written. */
export async function refreshSchema(context: CommandContext, dir: string): Promise<string | undefined> {
  const path = join(dir, schemaFile)
  if (!existsSync(context.path(path))) return undefined
  const schema = await editorSchema(context, dir)
  if (readFileSync(context.path(path), 'utf8') === schema) return undefined
  writeFileSync(context.path(path), schema)
  return path
}
