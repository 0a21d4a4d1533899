/** Arguments that are changed before a call is allowed: a form, or JSON. */
import { formOfArguments, readArguments } from './argument-form.ts'
import { Button } from './Button.tsx'
import { JsonField, readJson } from './JsonField.tsx'
import { SchemaForm, type FormFields, type Schema } from './SchemaForm.tsx'
import css from './OpenRequest.module.css'

export interface EditedArguments {
  form: Schema | undefined
  fields: FormFields
  /** As JSON, if it is not edited as a form. */
  text: string | undefined
  fault?: string
}

export function editedArguments(input: unknown, schema: Schema | undefined): EditedArguments {
  const form = formOfArguments(input, schema)
  return { form, fields: {}, text: form === undefined ? jsonOf(input) : undefined }
}

/** What would be sent; undefined, and why, if it cannot be. */
export function readEdited(edited: EditedArguments, input: unknown): { value: unknown } | { fault: string } {
  const { form, fields, text } = edited
  if (text !== undefined) {
    return readJson(text) ?? { fault: 'The arguments must be JSON. A text stands in "quotes".' }
  }
  const { value, faults } = readArguments(form!, input, fields)
  return faults.length === 0 ? { value } : { fault: faults.join(' ') }
}

interface Props {
  edited: EditedArguments
  input: unknown
  onChange(edited: EditedArguments): void
}

export function ArgumentsField({ edited, input, onChange }: Props) {
  const { form, fields, text, fault } = edited
  const asJson = () => {
    const read = readEdited(edited, input)
    if ('fault' in read) onChange({ ...edited, fault: read.fault })
    else onChange({ form, fields, text: jsonOf(read.value) })
  }
  return text === undefined ? (
    <div className={css.edited}>
      <fieldset aria-label="Arguments">
        <SchemaForm schema={form!} fields={fields} onChange={(next) => onChange({ form, text, fields: next })} />
      </fieldset>
      {fault !== undefined && (
        <p className={css.error} role="alert">
          {fault}
        </p>
      )}
      <Button look="quiet" onClick={asJson}>
        Edit as JSON
      </Button>
    </div>
  ) : (
    <JsonField
      label="Arguments"
      text={text}
      fault={fault}
      onChange={(next) => onChange({ form, fields, text: next })}
    />
  )
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? ''
}
