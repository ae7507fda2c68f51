package peer;

/** Structured concurrency: scopes, opened and left one after the other. */
interface Scopes {
    /** Scopes with two forks; the sum of what these returned. */
    Took two(int scopes) throws Exception;

    /** Scopes with so many forks; the sum of what these returned. */
    Took many(int scopes, int forks) throws Exception;

    /** Scopes with so many forks, of which the first result is taken; how many of the forks ended as they must. */
    Took first(int scopes, int tasks) throws Exception;
}
