/* Result codes of the SNIA Key Value Storage API 1.1. */
#ifndef KVS_RESULT_H
#define KVS_RESULT_H

typedef enum {
  KVS_SUCCESS = 0,
  KVS_ERR_BUFFER_SMALL = 0x001,             /* the caller's buffer is too short */
  KVS_ERR_DEV_CAPACITY = 0x002,             /* the device has no space, or the key space is too large */
  KVS_ERR_DEV_CAPAPCITY = 0x002,            /* the same, in the spelling of older headers */
  KVS_ERR_DEV_NOT_EXIST = 0x003,            /* no such device */
  KVS_ERR_KS_CAPACITY = 0x004,              /* the key space has no space */
  KVS_ERR_KS_EXIST = 0x005,                 /* a key space of that name exists */
  KVS_ERR_KS_INDEX = 0x006,                 /* no key space at that index */
  KVS_ERR_KS_NAME = 0x007,                  /* an invalid name of a key space */
  KVS_ERR_KS_NOT_EXIST = 0x008,             /* no such key space */
  KVS_ERR_KS_NOT_OPEN = 0x009,              /* the key space is not open */
  KVS_ERR_KS_OPEN = 0x00A,                  /* the key space is open */
  KVS_ERR_ITERATOR_FILTER_INVALID = 0x00B,  /* an invalid filter of a group */
  KVS_ERR_ITERATOR_MAX = 0x00C,             /* the maximum of iterators is open */
  KVS_ERR_ITERATOR_NOT_EXIST = 0x00D,       /* no such iterator */
  KVS_ERR_ITERATOR_OPEN = 0x00E,            /* the same iterator is open */
  KVS_ERR_KEY_LENGTH_INVALID = 0x00F,       /* a key that is too short or too long */
  KVS_ERR_KEY_NOT_EXIST = 0x010,            /* the key does not exist */
  KVS_ERR_OPTION_INVALID = 0x011,           /* an option that the device does not have */
  KVS_ERR_PARAM_INVALID = 0x012,            /* a null pointer, or an invalid value */
  KVS_ERR_SYS_IO = 0x013,                   /* the device failed */
  KVS_ERR_VALUE_LENGTH_INVALID = 0x014,     /* a value that is too long */
  KVS_ERR_VALUE_OFFSET_INVALID = 0x015,     /* an offset behind the value's end */
  KVS_ERR_VALUE_OFFSET_MISALIGNED = 0x016,  /* an offset that is not a multiple of KVS_ALIGNMENT_UNIT */
  KVS_ERR_VALUE_UPDATE_NOT_ALLOWED = 0x017, /* the key exists and must not be overwritten */
  KVS_ERR_DEV_NOT_OPENED = 0x018            /* the device is not open */
} kvs_result;

#endif
