/** The page comes from another port than the server, so the server must allow it. */
export default {
  server: { allowedOrigins: ['http://localhost:5173'] },
}
