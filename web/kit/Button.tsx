import type { ButtonHTMLAttributes, ReactNode } from 'react'
import { Icon, type IconName } from './Icon.tsx'
import css from './Button.module.css'

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `primary`: the one thing to do here. `quiet`: without a border. Default: with a border. */
  look?: 'primary' | 'quiet' | 'danger'
  icon?: IconName
  children?: ReactNode
}

/** A button. Without children it shows its icon only: give it an `aria-label`, which is its tooltip too. */
export function Button({ look, icon, children, className = '', ...rest }: Props) {
  const classes = [css.button, look && css[look], children === undefined && css.square, className]
    .filter(Boolean)
    .join(' ')
  return (
    <button type="button" title={children === undefined ? rest['aria-label'] : undefined} {...rest} className={classes}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}
