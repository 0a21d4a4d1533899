/** The JSON Schema of a tool, as the model of a run was told. */
import type { EntryOf } from '../../src/part/entry.ts'
import { fetchApi } from './client.ts'

/** Undefined if the log does not say: not all callers see prompts. */
export async function toolSchema(runId: string, tool: string): Promise<Record<string, unknown> | undefined> {
  const path = `/api/runs/${encodeURIComponent(runId)}/events?types=prompt&limit=20&cut=4000`
  try {
    const response = await fetchApi(path, { accept: 'application/x-ndjson' })
    const lines = (await response.text()).split('\n').filter((line) => line !== '')
    const prompts = lines.map((line) => JSON.parse(line) as EntryOf<'prompt'>)
    return prompts.flatMap(({ tools = [] }) => tools).find(({ name }) => name === tool)?.inputSchema
  } catch {
    return undefined
  }
}
