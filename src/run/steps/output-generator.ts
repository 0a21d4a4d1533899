/** `output-generator`: maps variables to a value, or reads JSON out of a model's text. Calls no model. */
import { readJson } from '../../part/read-json.ts'
import type { OutputConfig } from '../../pipeline/pipeline.ts'

/** `config` has its references resolved already. */
export function generateOutput(config: OutputConfig): unknown {
  return config.json === undefined ? config.template : readJson(config.json)
}
