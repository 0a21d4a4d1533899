/** The arguments of a call as a form: a field for each that its tool takes or that the model gave. */
import { readFields, toField, type FormFields, type Schema } from './SchemaForm.tsx'

/** More fields are no form any more. */
const mostFields = 30

/** `schema`: that of the tool, if it is known. Undefined: they are better written as JSON. */
export function formOfArguments(input: unknown, schema?: Schema): Schema | undefined {
  if (!isFields(input)) return undefined
  const known = schema?.properties ?? {}
  const names = [...new Set([...Object.keys(known), ...Object.keys(input)])]
  if (names.length === 0 || names.length > mostFields) return undefined
  const fields = names.map((name): [string, Schema] => {
    const { default: _, ...of } = known[name] ?? schemaOf(input[name])
    // What the model left out stays out until somebody fills it in.
    return [name, { ...of, ...(name in input && { default: input[name] }) }]
  })
  return { properties: Object.fromEntries(fields), required: schema?.required ?? [] }
}

/** What nobody has changed stays exactly as it was. */
export function readArguments(
  form: Schema,
  input: unknown,
  fields: FormFields,
): { value: Record<string, unknown>; faults: string[] } {
  const value: Record<string, unknown> = { ...(input as Record<string, unknown>) }
  const faults: string[] = []
  for (const [name, text] of Object.entries(fields)) {
    const { default: was, ...of } = form.properties?.[name] ?? {}
    if (text === toField(was)) continue
    delete value[name]
    const required = form.required?.includes(name) === true ? [name] : []
    const read = readFields({ properties: { [name]: of }, required }, { [name]: text })
    Object.assign(value, read.values)
    faults.push(...read.faults)
  }
  return { value, faults }
}

function schemaOf(value: unknown): Schema {
  if (Array.isArray(value)) return { type: 'array' }
  const type = typeof value
  if (type === 'string' || type === 'number' || type === 'boolean') return { type }
  return value === null ? {} : { type: 'object' }
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
