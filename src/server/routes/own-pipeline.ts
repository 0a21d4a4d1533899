/** `pipeline` in the body of a request: YAML with which one run goes on instead of its agent's file. */
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { RequestContext } from '../handler-context.ts'
import { checkText, textIn, toAgentCheck } from './agents.ts'

/** Undefined if the body has none; a 422 with the faults of the text. Throws `forbidden` for a caller who may not edit agents. */
export function pipelineIn(
  context: RequestContext,
  request: Request,
  body: Record<string, unknown>,
  agent: string,
): Pipeline | Response | undefined {
  if (body['pipeline'] === undefined) return undefined
  context.editing.check(request)
  const text = textIn(body, 'pipeline')
  const checked = checkText(context, agent, text)
  if (checked.pipeline !== undefined && checked.faults.length === 0) return checked.pipeline
  return Response.json(toAgentCheck(text, checked), { status: 422 })
}
