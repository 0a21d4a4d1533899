import { copyText } from '../kit/copy-text.ts'
import { notice } from '../kit/notice.ts'

/** Copies the address of what is shown: every state is a link. */
export function copyLink(): void {
  copyText(location.href).then(
    () => notice('Link copied'),
    () => notice('The browser does not allow copying here'),
  )
}
