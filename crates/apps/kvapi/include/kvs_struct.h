/* Types of the SNIA Key Value Storage API 1.1, laid out as in OpenMPDK's libkvapi 1.6. */
#ifndef KVS_STRUCT_H
#define KVS_STRUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "kvs_const.h"
#include "kvs_result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint8_t major;
  uint8_t minor;
  uint8_t micro;
} kvs_api_version;

/* The kind of an asynchronous command. */
typedef enum {
  KVS_CMD_DELETE = 0x01,
  KVS_CMD_DELETE_GROUP = 0x02,
  KVS_CMD_EXIST = 0x03,
  KVS_CMD_ITER_CREATE = 0x04,
  KVS_CMD_ITER_DELETE = 0x05,
  KVS_CMD_ITER_NEXT = 0x06,
  KVS_CMD_RETRIEVE = 0x07,
  KVS_CMD_STORE = 0x08
} kvs_context;

typedef enum {
  KVS_KEY_ORDER_NONE = 0,    /* the only order that an index by hashes supports */
  KVS_KEY_ORDER_ASCEND = 1,
  KVS_KEY_ORDER_DESCEND = 2
} kvs_key_order;

typedef struct {
  kvs_key_order ordering;
} kvs_option_key_space;

typedef struct {
  bool kvs_delete_error; /* an absent key is an error */
} kvs_option_delete;

typedef enum {
  KVS_ITERATOR_KEY = 0,
  KVS_ITERATOR_KEY_VALUE = 1
} kvs_iterator_type;

typedef struct {
  kvs_iterator_type iter_type;
} kvs_option_iterator;

typedef struct {
  bool kvs_retrieve_delete; /* delete the pair once its value was retrieved */
} kvs_option_retrieve;

typedef enum {
  KVS_STORE_POST = 0,        /* overwrite or create */
  KVS_STORE_UPDATE_ONLY = 1, /* overwrite only */
  KVS_STORE_NOOVERWRITE = 2, /* create only */
  KVS_STORE_APPEND = 3       /* append or create */
} kvs_store_type;

typedef enum {
  KVS_NOASSOCIATION = 0,
  KVS_ASSOCIATION_STREAM = 1
} kvs_association_type;

typedef struct {
  void *key;
  uint16_t length;
} kvs_key;

typedef struct {
  void *value;
  uint32_t length;            /* bytes of the buffer; after a retrieval, filled bytes */
  uint32_t actual_value_size; /* after a retrieval, bytes of the whole value */
  uint32_t offset;            /* of the retrieved part, in the value */
} kvs_value;

typedef struct {
  kvs_association_type assoc_type;
  uint16_t assoc_hint;
} kvs_association;

typedef struct {
  kvs_store_type st_type;
  kvs_association *assoc; /* may be null */
} kvs_option_store;

/* Handles are numbers, not addresses: every use of a closed one is detected. */
struct _kvs_device_handle;
struct _kvs_key_space_handle;
typedef struct _kvs_device_handle *kvs_device_handle;
typedef struct _kvs_key_space_handle *kvs_key_space_handle;
typedef uint8_t kvs_iterator_handle;

typedef struct {
  uint32_t name_len; /* bytes of the name; for a returned name, first those of the buffer */
  char *name;
} kvs_key_space_name;

typedef struct {
  bool opened;
  uint64_t capacity;  /* bytes; 0 means only the device's limit */
  uint64_t free_size; /* bytes */
  uint64_t count;     /* pairs */
  kvs_key_space_name *name;
} kvs_key_space;

typedef struct {
  uint64_t capacity;                  /* bytes */
  uint64_t unalloc_capacity;          /* bytes not reserved by a key space */
  uint32_t max_value_len;             /* bytes */
  uint32_t max_key_len;               /* bytes */
  uint32_t optimal_value_len;         /* bytes */
  uint32_t optimal_value_granularity; /* bytes */
  void *extended_info;                /* null */
} kvs_device;

typedef struct {
  uint32_t num_keys;
  kvs_key *keys;
  uint32_t length;        /* bytes of the buffer; then the filled ones */
  uint8_t *result_buffer; /* a bit for each key, from the lowest of the first byte on */
} kvs_exist_list;

typedef struct {
  uint8_t bitmask[KVS_MAX_KEY_GROUP_BYTES];     /* the compared bits */
  uint8_t bit_pattern[KVS_MAX_KEY_GROUP_BYTES]; /* their required values */
} kvs_key_group_filter;

/* it_list holds num_entries of: bytes of the key (uint32_t), the key, and, if values are iterated, bytes of the
 * value (uint32_t) and the value. Numbers are little-endian and not aligned. */
typedef struct {
  uint32_t num_entries;
  bool end;      /* whether these were the last */
  uint32_t size; /* bytes of the buffer; then the filled ones */
  uint8_t *it_list;
} kvs_iterator_list;

typedef struct {
  kvs_context context;
  kvs_key_space_handle ks_hd;
  kvs_key *key;
  kvs_value *value;
  void *option;
  void *private1;
  void *private2;
  kvs_result result;
  kvs_iterator_handle iter_hd;
  union {
    kvs_iterator_list *iter_list;
    kvs_exist_list *list;
  } result_buffer;
} kvs_postprocess_context;

/* Called on a thread of the library when an asynchronous command has ended. */
typedef void (*kvs_postprocess_function)(kvs_postprocess_context *ctx);

typedef struct {
  uint16_t key_len;
  uint8_t *key; /* the caller's buffer, as long as the key */
  uint32_t value_len;
} kvs_kvp_info;

#ifdef __cplusplus
}
#endif

#endif
