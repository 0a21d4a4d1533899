import { Button } from './Button.tsx'
import css from './NewRows.module.css'

/** New rows that wait above a list until the reader wants them. It lies over the list, so nothing moves. */
export function NewRows({ count, isOutrun, onShow }: { count: number; isOutrun: boolean; onShow(): void }) {
  return (
    <output className={css.place}>
      {count > 0 && (
        <Button look="primary" className={css.pill} onClick={onShow}>
          {isOutrun ? `${count}+ new` : `${count} new`}
        </Button>
      )}
    </output>
  )
}
