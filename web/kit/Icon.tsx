/** Icons, drawn in a square of 16. They are decoration: the words beside them, or the label of their button, tell what they mean. */
const paths = {
  chat: 'M2.5 3.5h11v7.5h-6l-3 2.5V11h-2z',
  runs: 'M2.5 4h7M2.5 8h11M2.5 12h5',
  threads: 'M2.5 3h8v5h-5l-1.5 1.5V8h-1.5zM12 6h1.5v6H12v1.5L10.5 12H7',
  agents: 'M3 2.5h4v4H3zM9 9.5h4v4H9zM5 6.5v5h4',
  tests: 'M2.500 4.500l1.300 1.300 2.200-2.600M8.500 4.500h5M2.500 11l1.300 1.300 2.200-2.600M8.500 11h5',
  overview: 'M2.5 13.5h11M4 11V7M8 11V3M12 11V5.5',
  more: 'M3 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M7.500 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M12 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0',
  send: 'M8 13V3M4 7l4-4 4 4',
  stop: 'M4 4h8v8H4z',
  sliders: 'M2.500 5h6M12 5h1.500M2.500 11h1.500M7.500 11h6M8.500 3.500h3.500v3H8.500zM4 9.500h3.500v3H4z',
  columns: 'M2.500 3h4.500v10H2.500zM9 3h4.500v10H9z',
  code: 'M5.5 4.5L2 8l3.500 3.500M10.500 4.5L14 8l-3.500 3.500',
  copy: 'M5.5 5.5h7v7h-7zM3.5 10.5v-7h7',
  check: 'M3.5 8.5l3 3 6-7',
  close: 'M4 4l8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3 3',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  left: 'M10 4L6 8l4 4',
  edit: 'M3 13h2.5l7-7L10 3.5l-7 7zM9 4.5L11.500 7',
  retry: 'M13 8a5 5 0 1 1-1.500-3.600M13 2v3h-3',
  swap: 'M3 5.500h9M9.500 3l2.500 2.500L9.500 8M13 10.500H4M6.500 8L4 10.500 6.500 13',
  fork: 'M5 3v10M5 9c0-3 6-1 6-5M9 5.500l2-2 2 2',
  play: 'M5 3.500v9l7-4.500z',
  pause: 'M5 3.500v9M11 3.500v9',
  link: 'M6.500 9.500l3-3M7 4.500l1.500-1.500a3 3 0 0 1 4.500 4.500L11.500 9M9 11.500L7.500 13A3 3 0 0 1 3 8.500L4.500 7',
  warn: 'M8 2.500l6 11H2zM8 6.500v3.500M8 12v.2',
  menu: 'M3 4.500h10M3 8h10M3 11.500h10',
  file: 'M4 2.500h5l3 3v8H4zM9 2.500v3h3',
  tool: 'M10 2.500a3.500 3.500 0 0 0-3.300 4.700L2.500 11.400 4.600 13.500l4.200-4.200A3.500 3.500 0 0 0 13.300 5L11 7.200 8.800 5 11 2.700z',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1',
  moon: 'M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z',
  screen: 'M2.500 3.500h11v7.500h-11zM6 13.500h4',
  key: 'M10.500 8.500a3 3 0 1 0-2.800-2L2.500 11.700v1.800h2.500v-1.500h1.500V10.500H8l.800-.8a3 3 0 0 0 1.700-1.200z',
  keyboard: 'M1.500 4.500h13v7.500h-13zM4 7h.2M6.500 7h.2M9 7h.2M11.500 7h.2M5 9.500h6',
  first: 'M4 3.500v9M12.500 3.500L7 8l5.500 4.500z',
  last: 'M12 3.500v9M3.500 3.500L9 8l-5.500 4.500z',
  model: 'M8 2.500l1.500 4 4 1.500-4 1.500-1.500 4-1.500-4-4-1.500 4-1.500z',
  loop: 'M4 6.500a4 4 0 0 1 7.500-1M12 2.500v3.200H8.800M12 9.500a4 4 0 0 1-7.500 1M4 13.500v-3.200h3.200',
  box: 'M3 4h10v8H3z',
  thumbUp:
    'M2.500 7h2.500v6.500H2.500zM5 7l2.500-4.500c1.200 0 1.800.8 1.500 2L8.500 6.500h4c.8 0 1.300.7 1.100 1.500l-1 4.300c-.2.700-.7 1.200-1.400 1.200H5',
  thumbDown:
    'M2.500 9h2.500V2.500H2.500zM5 9l2.500 4.500c1.200 0 1.800-.8 1.500-2L8.500 9.500h4c.8 0 1.300-.7 1.100-1.500l-1-4.300c-.2-.7-.7-1.200-1.400-1.200H5',
  person: 'M8 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM3 13.500c.5-3 2.500-4 5-4s4.500 1 5 4',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      aria-hidden="true"
    >
      <path d={paths[name]} strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  )
}
