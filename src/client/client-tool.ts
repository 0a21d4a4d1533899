/** Tools that run in the client, with any schema library: zod 4, ArkType, Valibot … bring their own converter. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'

/** The context of a call, for its tool. */
export interface ClientToolContext {
  runId: string
  toolCallId: string
}

/** A tool that runs in the client. `defineTool` makes one from a schema. */
export interface ClientTool {
  /** Absent if the tool stands under its name, as in `tools: { setColor: defineTool(…) }`. */
  name?: string
  description?: string
  /** JSON Schema of the arguments. Default: no arguments. */
  parameters?: Record<string, unknown>
  /**
   * The call waits on the server until it is approved: a gate that no client can pass by. A text is the question for the user. A
   * function gets the arguments: whatever it returns `false` for is approved without asking.
   */
  confirm?: Confirm
  /**
   * Called when the model calls the tool. The model receives the return value, or an error if this throws. Without `execute`
   * the run is suspended until you call `answer`.
   */
  execute?(input: any, context: ClientToolContext): unknown
}

export type Confirm = boolean | string | ((input: any) => boolean | string | Promise<boolean | string>)

/** A list, or an object with each tool under its name. */
export type ClientTools = readonly ClientTool[] | Readonly<Record<string, ClientTool>>

export type NamedTool = ClientTool & { name: string }

/**
 * A schema of any library that knows [Standard Schema](https://standardschema.dev), such as zod 4, or JSON Schema as it is. Arguments
 * for JSON Schema are not checked here.
 */
export type ToolSchema<Input = any> = StandardSchema<Input> | Record<string, unknown>

interface StandardSchema<Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => Checked<Input> | Promise<Checked<Input>>
    readonly types?: { readonly input: unknown; readonly output: Input } | undefined
    readonly jsonSchema?: { input(options: { target: string }): Record<string, unknown> }
  }
  toJSONSchema?: (options?: any) => unknown
}

type Checked<Input> =
  | { readonly value: Input; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        message: string
        path?: readonly (PropertyKey | { key: PropertyKey })[] | undefined
      }[]
    }

/** The arguments as the tool gets them. */
export type ToolInput<Schema> = Schema extends {
  readonly '~standard': { readonly types?: { readonly output: infer Input } | undefined }
}
  ? Input
  : any

/** Options of `defineTool`. */
export interface ToolOptions<Input = any> {
  name?: string
  /** See {@link ClientTool.confirm}. */
  confirm?: boolean | string | ((input: Input) => boolean | string | Promise<boolean | string>)
  /** JSON Schema of the arguments, for a schema that cannot tell its own. */
  parameters?: Record<string, unknown>
}

/**
 * A tool that runs in the client. Arguments that do not fit the schema never reach `execute`: the model gets the fault. Throws
 * `bad-tool` for a schema that has no JSON Schema.
 */
export function defineTool<Schema extends ToolSchema>(
  description: string,
  schema: Schema,
  execute: (input: ToolInput<Schema>, context: ClientToolContext) => unknown,
  { name, confirm, parameters = jsonSchemaOf(schema) }: ToolOptions<ToolInput<Schema>> = {},
): ClientTool {
  return {
    description,
    parameters,
    ...omitUndefined({ name, confirm }),
    execute: async (input: unknown, context) => execute((await checked(schema, input)) as ToolInput<Schema>, context),
  }
}

/** Each tool with its name. Throws `bad-tool`. */
export function toNamedTools(tools: ClientTools = []): NamedTool[] {
  const named = Array.isArray(tools)
    ? (tools as readonly ClientTool[])
    : Object.entries(tools).map(([name, tool]) => ({ ...tool, name }))
  const seen = new Set<string>()
  for (const [i, { name }] of named.entries()) {
    const cure = 'Give each tool a name of its own, or put it under its name: { setColor: defineTool(…) }.'
    if (!name) throw new MillraceError('bad-tool', `tools[${i}] has no name. ${cure}`)
    if (seen.has(name)) throw new MillraceError('bad-tool', `Two tools are called "${name}". ${cure}`)
    seen.add(name)
  }
  return named as NamedTool[]
}

/** As the server is told. */
export function toOffer({ name, description, parameters, confirm }: NamedTool): object {
  const isGated = confirm !== undefined && confirm !== false
  return omitUndefined({ name, description, parameters, confirm: isGated ? true : undefined })
}

function isStandard(schema: ToolSchema): schema is StandardSchema<any> {
  return typeof (schema as Partial<StandardSchema<any>>)['~standard'] === 'object'
}

function jsonSchemaOf(schema: ToolSchema): Record<string, unknown> {
  if (!isStandard(schema)) return schema
  const { jsonSchema, vendor } = schema['~standard']
  const target = 'draft-07'
  const made = jsonSchema?.input({ target }) ?? schema.toJSONSchema?.({ target, io: 'input' })
  if (typeof made !== 'object' || made === null) {
    const cure =
      'Pass it as `parameters` in the last argument; zod 4 and other libraries with Standard JSON Schema need none.'
    throw new MillraceError('bad-tool', `The schema of "${vendor}" does not say its JSON Schema. ${cure}`)
  }
  const { $schema: _, ...parameters } = made as Record<string, unknown>
  return parameters
}

async function checked(schema: ToolSchema, input: unknown): Promise<unknown> {
  if (!isStandard(schema)) return input
  const result = await schema['~standard'].validate(input)
  if (result.issues === undefined) return result.value
  const faults = result.issues.map(({ message, path = [] }) => {
    const place = path.map((key) => String(typeof key === 'object' ? key.key : key)).join('.')
    return place === '' ? message : `${place}: ${message}`
  })
  throw new MillraceError('bad-arguments', `The arguments do not fit the tool: ${faults.join('; ')}`)
}
