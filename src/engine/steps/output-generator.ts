/** `output-generator`: maps variables to a value, or extracts JSON from a model's text. Calls no model. */
import { readJson } from '../../part/json.ts'
import type { OutputConfig } from '../../pipeline/pipeline.ts'

/** `config`: with its references resolved. */
export function generateOutput(config: OutputConfig): unknown {
  return config.json === undefined ? config.template : readJson(config.json)
}
