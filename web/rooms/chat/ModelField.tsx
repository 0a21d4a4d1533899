/** A model: any that is written, or one of those that the server knows, whatever is written. */
import { useId, useRef, type InputHTMLAttributes } from 'react'
import { Icon } from '../../kit/Icon.tsx'
import css from './Agent.module.css'

interface Props extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'> {
  models: readonly string[]
  onModel(model: string | null): void
}

export function ModelField({ models, onModel, ...rest }: Props) {
  const list = useId()
  const input = useRef<HTMLInputElement>(null)
  const take = (text: string) => onModel(text.trim() === '' ? null : text.trim())
  const choose = (model: string) => {
    input.current!.value = model
    take(model)
  }
  return (
    <div className={css.model}>
      <input
        {...rest}
        ref={input}
        list={list}
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        placeholder="the default of this server"
        onChange={({ target }) => take(target.value)}
      />
      <datalist id={list}>
        {models.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </datalist>
      {models.length > 0 && (
        <span className={css.choose}>
          {/* The list of the field has only what fits the words in it. */}
          <select aria-label="Choose one of this server" value="" onChange={({ target }) => choose(target.value)}>
            <option value="" disabled hidden>
              Models
            </option>
            {models.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <Icon name="down" />
        </span>
      )}
    </div>
  )
}
