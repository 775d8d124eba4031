// The numbers of libcurl's interface, under the names that its own headers give them; they are part of its ABI and never change.

#if defined(__linux__)

// CURLoption, by number: below 10 000 a long, from there on a pointer, from 20 000 on a function, from 30 000 on a 64-bit integer.
enum {
    CURLOPT_WRITEDATA = 10001,
    CURLOPT_URL = 10002,
    CURLOPT_READDATA = 10009,
    CURLOPT_ERRORBUFFER = 10010,
    CURLOPT_WRITEFUNCTION = 20011,
    CURLOPT_READFUNCTION = 20012,
    CURLOPT_POSTFIELDS = 10015,
    CURLOPT_HTTPHEADER = 10023,
    CURLOPT_HEADERDATA = 10029,
    CURLOPT_CUSTOMREQUEST = 10036,
    CURLOPT_NOBODY = 44,
    CURLOPT_POST = 47,
    CURLOPT_CAINFO = 10065,
    CURLOPT_FRESH_CONNECT = 74,
    CURLOPT_HEADERFUNCTION = 20079,
    CURLOPT_HTTPGET = 80,
    CURLOPT_HTTP_VERSION = 84,
    CURLOPT_BUFFERSIZE = 98,
    CURLOPT_NOSIGNAL = 99,
    CURLOPT_PRIVATE = 10103,
    CURLOPT_POSTFIELDSIZE_LARGE = 30120,
    CURLOPT_OPENSOCKETFUNCTION = 20163,
    CURLOPT_OPENSOCKETDATA = 10164,
    CURLOPT_COPYPOSTFIELDS = 10165,
    CURLOPT_SEEKFUNCTION = 20167,
    CURLOPT_SEEKDATA = 10168,
    CURLOPT_PROTOCOLS = 181,
    CURLOPT_PATH_AS_IS = 234,
    CURLOPT_SUPPRESS_CONNECT_HEADERS = 265,
    CURLOPT_DISALLOW_USERNAME_IN_URL = 278,
    CURLOPT_HTTP09_ALLOWED = 285,
    // Since 7.80.
    CURLOPT_PREREQFUNCTION = 20312,
    CURLOPT_PREREQDATA = 10313,
};

// Values of options.
enum {
    CURLPROTO_HTTP = 1,
    CURLPROTO_HTTPS = 2,
    CURL_HTTP_VERSION_1_1 = 2,
    CURL_SEEKFUNC_OK = 0,
    CURL_SEEKFUNC_CANTSEEK = 2,
    CURLPAUSE_RECV = 1,
    CURLPAUSE_SEND = 4,
};

// CURLINFO: the type in the upper bits, the number in the lower ones.
enum {
    CURLINFO_PRIVATE = 0x100000 + 21,
    CURLINFO_OS_ERRNO = 0x200000 + 25,
    CURLINFO_NUM_CONNECTS = 0x200000 + 26,
};

// CURLMoption.
enum {
    CURLMOPT_MAXCONNECTS = 6,
    CURLMOPT_SOCKETFUNCTION = 20001,
    CURLMOPT_SOCKETDATA = 10002,
    CURLMOPT_TIMERFUNCTION = 20004,
    CURLMOPT_TIMERDATA = 10005,
};

// What the socket function gets, what `curl_multi_socket_action` takes, and what `curl_multi_info_read` returns.
enum {
    CURL_POLL_IN = 1,
    CURL_POLL_OUT = 2,
    CURL_POLL_REMOVE = 4,
    CURL_CSELECT_IN = 1,
    CURL_CSELECT_OUT = 2,
    CURL_CSELECT_ERR = 4,
    CURL_SOCKET_TIMEOUT = -1,
    CURL_SOCKET_BAD = -1,
    CURLMSG_DONE = 1,
};

// CURLcode, as far as the shim returns one itself.
enum {
    CURLE_OK = 0,
    CURLE_FAILED_INIT = 2,
    CURLE_OUT_OF_MEMORY = 27,
};

// The library itself: initialization, the forms of its description, and the bits of its features.
enum {
    CURL_GLOBAL_DEFAULT = 3,
    CURLVERSION_FOURTH = 3,
    CURLVERSION_SEVENTH = 6,
    CURL_VERSION_ASYNCHDNS = 1 << 7,
    CURL_VERSION_THREADSAFE = 1 << 30,
};

#endif
