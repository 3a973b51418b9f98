/* Limits of the SNIA Key Value Storage API 1.1, as in libkvapi. */
#ifndef KVS_CONST_H
#define KVS_CONST_H

#define KVS_MIN_KEY_LENGTH 4
#define KVS_MAX_KEY_LENGTH 255
#define KVS_MIN_VALUE_LENGTH 0
#define KVS_MAX_VALUE_LENGTH (2 * 1024 * 1024)
#define KVS_OPTIMAL_VALUE_LENGTH 4096
/* Offsets into values must be multiples of it. */
#define KVS_ALIGNMENT_UNIT 512
#define KVS_VALUE_LENGTH_ALIGNMENT_UNIT 4
/* The most open iterators. */
#define KVS_MAX_ITERATE_HANDLE 16
#define G_ITER_KEY_SIZE_FIXED 16
/* The first bytes of a key, which identify a group. */
#define KVS_MAX_KEY_GROUP_BYTES 4
#define KVS_ITERATOR_BUFFER_SIZE (32 * 1024)
#define MAX_CONT_PATH_LEN 255
#define MAX_KEYSPACE_NAME_LEN MAX_CONT_PATH_LEN

#endif
