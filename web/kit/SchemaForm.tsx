/** A form for a JSON Schema of an object: a field for each property. What has no field of its own is written as JSON. */
import { useId } from 'react'
import css from './SchemaForm.module.css'

export interface Schema {
  type?: string | string[]
  title?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  format?: string
  minimum?: number
  maximum?: number
}

/** What stands in the fields, by property. A property whose field is empty is absent. */
export type FormFields = Readonly<Record<string, string>>

interface Props {
  schema: Schema
  fields: FormFields
  onChange(fields: FormFields): void
}

export function SchemaForm({ schema, fields, onChange }: Props) {
  const id = useId()
  return (
    <div className={css.form}>
      {Object.entries(schema.properties ?? {}).map(([name, of]) => {
        const isRequired = schema.required?.includes(name) === true
        const props: FieldProps = {
          id: `${id}-${name}`,
          schema: of,
          isRequired,
          text: fields[name] ?? toField(of.default),
          describedBy: of.description === undefined ? undefined : `${id}-${name}-about`,
          onText: (text) => onChange({ ...fields, [name]: text }),
        }
        return (
          <div key={name} className={css.field}>
            <label htmlFor={props.id}>
              {of.title ?? name}
              {isRequired && <span className={css.required}> required</span>}
            </label>
            <Field {...props} />
            {of.description !== undefined && (
              <p id={props.describedBy} className={css.about}>
                {of.description}
              </p>
            )}
          </div>
        )
      })}
    </div>
  )
}

interface FieldProps {
  id: string
  schema: Schema
  isRequired: boolean
  text: string
  describedBy: string | undefined
  onText(text: string): void
}

function Field({ id, schema, isRequired, text, describedBy, onText }: FieldProps) {
  const common = { id, 'aria-describedby': describedBy, 'aria-required': isRequired }
  const options = schema.enum ?? (typeOf(schema) === 'boolean' ? [true, false] : undefined)
  if (options !== undefined) {
    return (
      <select {...common} value={text} onChange={(event) => onText(event.target.value)}>
        <option value="">–</option>
        {options.map((option) => (
          <option key={toField(option)} value={toField(option)}>
            {toField(option)}
          </option>
        ))}
      </select>
    )
  }
  const type = typeOf(schema)
  if (type === 'number' || type === 'integer') {
    return (
      <input
        {...common}
        type="number"
        step={type === 'integer' ? 1 : 'any'}
        min={schema.minimum}
        max={schema.maximum}
        value={text}
        onChange={(event) => onText(event.target.value)}
      />
    )
  }
  const isText = type === 'string'
  return (
    <textarea
      {...common}
      rows={isText ? 1 : 2}
      className={isText ? undefined : css.json}
      placeholder={isText ? undefined : type === 'array' ? '[…] as JSON' : 'JSON'}
      value={text}
      onChange={(event) => onText(event.target.value)}
    />
  )
}

/** The values of the fields, and what is wrong with them. The server checks the rest. */
export function readFields(schema: Schema, fields: FormFields): { values: Record<string, unknown>; faults: string[] } {
  const values: Record<string, unknown> = {}
  const faults: string[] = []
  for (const [name, of] of Object.entries(schema.properties ?? {})) {
    const text = fields[name] ?? toField(of.default)
    if (text === '') {
      if (schema.required?.includes(name) === true) faults.push(`${of.title ?? name} is missing.`)
      continue
    }
    const type = typeOf(of)
    const isText = type === 'string' || (of.enum?.includes(text) ?? false)
    try {
      values[name] = isText ? text : (JSON.parse(text) as unknown)
    } catch {
      // Without a type any value fits: what is not JSON is a text.
      if (type === undefined) values[name] = text
      else faults.push(`${of.title ?? name} must be JSON of type ${type}.`)
    }
  }
  return { values, faults }
}

function typeOf({ type, enum: options }: Schema): string | undefined {
  const first = Array.isArray(type) ? type.find((each) => each !== 'null') : type
  return first ?? (options?.every((option) => typeof option === 'string') === true ? 'string' : undefined)
}

/** As it stands in a field. */
export function toField(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
