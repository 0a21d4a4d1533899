/** The Beddel document's executor: runs one agent in this process and returns its answer. Web APIs only. */
import { fromErrorValue, MillraceError } from '../part/error.ts'
import { checkCalls } from '../pipeline/calls.ts'
import { formatFaults, parsePipeline, PipelineError } from '../pipeline/parse.ts'
import type { DisconnectPolicy, Pipeline } from '../pipeline/pipeline.ts'
import { agentSource, processEnvironment } from './create-runtime.ts'
import { createRegistry, knownNames, type Env } from './registry.ts'
import { findSecrets, secretValues } from './secrets.ts'
import { createSkillFiles } from './skill-files.ts'
import { fileSystem, type ParsedYaml } from './yaml.ts'
import { memoryStore } from '../store/memory-store.ts'
import { createRuntime } from '../runtime/create-runtime.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { textWire } from '../wire/text/text.ts'
import { type DeliveryContext, defaultKeepAliveMs } from '../delivery/open-delivery.ts'
import { deliveryResponse } from '../delivery/delivery-response.ts'
import { realResponse } from '../delivery/light-response.ts'
import { deliverRun } from '../delivery/deliver-run.ts'
import { errorResponse } from '../delivery/http-error.ts'
import { mayStream } from '../delivery/may-stream.ts'

/** Options of an executor. */
export interface ExecutorOptions {
  /** API keys and other variables. Default: those of the process, if it has any and may read them. */
  environment?: Env
}

/** Options of one execution. */
export interface ExecuteOptions {
  /** Stops the run. Cancelling the Response stops it too, unless the agent's `onDisconnect` says otherwise. */
  signal?: AbortSignal
}

const agentId = 'workflow'

/**
 * Runs one agent with the step types, tools and callbacks that {@link handlerRegistry}, {@link toolRegistry} and
 * {@link callbackRegistry} contain when it is created. Throws {@link PipelineError} for names that they do not contain. Runs
 * are kept in memory only. For a durable log, several agents or reconnecting clients use `createRuntime`.
 *
 *     const result = await new WorkflowExecutor(await loadYaml('agents/assistant.yaml')).execute({ messages })
 *     return result instanceof Response ? result : Response.json(result)
 */
export class WorkflowExecutor {
  readonly #runtime: Runtime
  readonly #streams: boolean
  readonly #policy: DisconnectPolicy

  constructor(yaml: ParsedYaml, { environment = processEnvironment() }: ExecutorOptions = {}) {
    if (typeof yaml?.text !== 'string') {
      throw new MillraceError('bad-pipeline', 'WorkflowExecutor expects the result of loadYaml or parseYaml.')
    }
    const store = memoryStore()
    const { folder } = yaml
    const registry = {
      ...createRegistry({}, environment, { log: store.log }),
      ...(folder !== undefined && { skills: createSkillFiles(fileSystem(), folder) }),
    }
    const known = knownNames(registry, {}, findSecrets({}, environment))
    // Parsed again, now that the registered names are known.
    const pipeline = parsePipeline(yaml.text, known)
    const others = Object.entries(yaml.agents ?? {}).filter(([, agent]) => agent.text !== yaml.text)
    const agents = others.map(([id, agent]) => ({ id, pipeline: parsePipeline(agent.text, known) }))
    const faults = checkCalls(
      new Map([[agentId, pipeline], ...agents.map((each) => [each.id, each.pipeline] as const)]),
    )
    if (faults.length > 0) {
      const lines = faults.map(({ agent, fault }) => formatFaults(agent, [fault]))
      throw new PipelineError(
        faults.map(({ fault }) => fault),
        lines.join('\n'),
      )
    }
    this.#streams = mayStream(pipeline, (id) => agents.find((each) => each.id === id)?.pipeline)
    this.#policy = pipeline.onDisconnect ?? 'cancel'
    this.#runtime = createRuntime({
      agents: agentSource([{ id: agentId, pipeline: { ...pipeline, return: shapeOf(pipeline) } }, ...agents]),
      registry,
      store,
      secrets: secretValues({}, environment),
    })
  }

  /**
   * Runs the agent with `input` as `$input`. If a step streams, resolves with a `Response` with the plain text stream (or with a
   * 4xx or 5xx if the run fails before the first token). Otherwise resolves with the value of `return`, or all results by
   * name, and throws a failure as `MillraceError`.
   */
  // oxlint-disable-next-line typescript/no-explicit-any -- without a stream the agent decides the type of the result
  async execute(input: Record<string, unknown>, { signal }: ExecuteOptions = {}): Promise<any> {
    const runtime = this.#runtime
    signal?.throwIfAborted()
    const run = await runtime.start(agentId, input, { handOver: true })
    const stop = () => void run.stop('Stopped by its caller.')
    signal?.addEventListener('abort', stop, { once: true })
    void run.result.then(() => signal?.removeEventListener('abort', stop))
    const answered = await deliverRun(context(runtime), {
      runId: run.id,
      wire: textWire,
      policy: this.#policy,
      streams: this.#streams,
      signal: new AbortController().signal,
    })
    switch (answered.kind) {
      case 'stream':
        return realResponse(deliveryResponse(textWire, run.id, answered.answer))
      case 'response':
        return answered.response
      case 'value':
        return answered.output
      case 'error': {
        const error = fromErrorValue(answered.error)
        if (this.#streams) return errorResponse(error)
        throw error
      }
      case 'left':
    }
  }
}

function context(runtime: Runtime): DeliveryContext {
  return { runtime, keepAliveMs: defaultKeepAliveMs(), onError: () => undefined }
}

/** The default result of the document's executor: every result under its name. */
function shapeOf({ return: shape, workflow }: Pipeline): unknown {
  if (shape !== undefined) return shape
  return Object.fromEntries(workflow.flatMap(({ result }) => (result === undefined ? [] : [[result, `$${result}?`]])))
}
